// SPDX-License-Identifier: Apache-2.0
//
// Choosing an algorithm. Only what is equal on all ranks is seen here, so that all decide alike.
#pragma once

#include <optional>

#include "select/decisions.h"
#include "select/rules.h"

namespace carillon {

/// The override for the collective if it can do the problem, else the first rule that holds and
/// can. Never fails: the built-in rules end, for each collective, with an algorithm that can do
/// any problem whose elements fit in a slot.
AlgorithmChoice select(const Shared& shared, const Limits& limits, const Rules& rules);

/// Why the tables of the team's alltoallvs are not surveyed (surveys.h); none: they are.
std::optional<Why> why_no_surveys(const Shared& shared, const Limits& limits, const Rules& rules);

}  // namespace carillon
