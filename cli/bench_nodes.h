// SPDX-License-Identifier: Apache-2.0
//
// carillon bench --compare: the same trees by send and receive and by remote write, between the
// nodes of a virtual cluster or between ranks of this machine that count as nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carillon::cli {

struct NodesBench {
  std::vector<std::string> compare;  ///< empty: not asked for
  std::vector<std::string> collectives;
  std::vector<std::int64_t> sizes;
  std::vector<int> degrees = {1, 2, 3, 4, 8};
  int nodes = 0;
  int ranks_per_node = 1;
  int iterations = 0;        ///< 0: the default
  std::string network;       ///< CARILLON_NETWORK; empty: as it is
  bool one_machine = false;  ///< no cluster
  bool json = false;
};

/// Measures and prints; the exit status.
int run_nodes_bench(NodesBench job);

}  // namespace carillon::cli
