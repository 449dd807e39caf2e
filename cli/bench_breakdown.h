// SPDX-License-Identifier: Apache-2.0
//
// carillon bench alltoall --breakdown: where the time of each algorithm goes, by kind of work: on
// one node, between the nodes of a virtual cluster, or between ranks of this machine that count as
// nodes.
#pragma once

#include <string>
#include <vector>

#include "bench_nodes.h"

namespace carillon::cli {

/// `nodes`: compare and degrees are unused. Of `algorithms` none: all that there are. Measures and
/// prints; the exit status.
int run_breakdown(NodesBench nodes, std::vector<std::string> algorithms);

}  // namespace carillon::cli
