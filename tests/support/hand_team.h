// SPDX-License-Identifier: Apache-2.0
//
// Hand-written schedules as tests use them: a team's schedules in text form, changed by replacing
// a piece of the text.
#pragma once

#include <string>
#include <string_view>

#include "schedule/machine.h"

namespace carillon::test {

/// Emits the schedule of that rank in `text` (one stage); an error if it does not parse.
Emit emit_text(std::string_view text);

/// `text` with the first `from` replaced by `to`; aborts the test process if there is no `from`.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace carillon::test
