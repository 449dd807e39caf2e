// SPDX-License-Identifier: Apache-2.0
//
// How long a collective takes if nothing is in anything's way: every strand has a clock, a message
// arrives a latency after it was written, copies cost their bytes. No contention, no windows: for
// comparing neighbouring problems, not for predicting times.
#pragma once

#include "schedule/machine.h"

namespace carillon::test {

struct PathCosts {
  double message_ns = 40;  ///< to write one, to take one up
  double latency_ns = 60;  ///< from written to seen
  double op_ns = 10;       ///< a copy or a reduction of nothing
  double byte_ns = 0.05;
};

/// The time from the common start to the end of the slowest rank.
Result<double> critical_path_ns(const TeamCall& call, const Emit& emit,
                                const PathCosts& costs = {});

}  // namespace carillon::test
