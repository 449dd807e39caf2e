// SPDX-License-Identifier: Apache-2.0
//
// The file of a trace, in the format of Chrome's trace viewer: a JSON array of events that several
// processes add to. It is whole after each of them.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace carillon {

/// Makes the file an empty array.
Status empty_trace_file(const std::string& file);

/// Adds `events`: JSON objects with commas between them.
Status add_to_trace_file(const std::string& file, std::string_view events);

}  // namespace carillon
