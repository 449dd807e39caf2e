// SPDX-License-Identifier: Apache-2.0
//
// Choosing an algorithm. Only what is equal on all ranks is seen here, so that all decide alike.
#pragma once

#include "select/rules.h"

namespace carillon {

/// The override for the collective if it can do the problem, else the first rule that holds and
/// can. Never fails: the built-in rules end, for each collective, with an algorithm that can do
/// any problem whose elements fit in a slot.
AlgorithmChoice select(const Shared& shared, const Limits& limits, const Rules& rules);

/// Whether the team's alltoallvs go by model, and surveys of their tables can pay (surveys.h).
bool needs_surveys(const Shared& shared, const Limits& limits, const Rules& rules);

}  // namespace carillon
