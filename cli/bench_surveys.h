// SPDX-License-Identifier: Apache-2.0
//
// carillon bench alltoallv --surveys: pairwise exchange against two phases, what surveys of the
// tables choose, and what they cost where they are of no use: between the nodes of a virtual
// cluster, or between ranks of this machine that count as nodes.
#pragma once

#include "bench_nodes.h"

namespace carillon::cli {

/// `job`: collectives, compare and degrees are unused, iterations are the calls of a round.
/// Measures and prints; the exit status.
int run_surveys_bench(NodesBench job, int rounds);

}  // namespace carillon::cli
