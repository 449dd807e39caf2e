// SPDX-License-Identifier: Apache-2.0
//
// draw: who sends to whom, step by step, for a person to look at.
//
//   step 1   1->0 8   3->2 8
//   step 2   2->0 8 x2
//
// A message belongs to step n + 1 if its writer had to receive a chain of n messages before it.
// The number after the arrow is bytes; "x2" says how many messages there are of that size.
#pragma once

#include <string>

#include "base/status.h"
#include "schedule/machine.h"

namespace carillon {

/// Works for schedules of one stage.
Result<std::string> draw(const TeamCall& call, const Emit& emit);

}  // namespace carillon
