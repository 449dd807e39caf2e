// SPDX-License-Identifier: Apache-2.0
//
// carillon bench --compare: the same trees by send and receive and by remote write, between the
// nodes of a virtual cluster or between ranks of this machine that count as nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/process.h"

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

/// What starts `program`, of this installation, on each node of the job, with these words after
/// those that say which ranks there are; and what goes into its environment.
Arguments on_nodes(const NodesBench& job, const char* program, const Arguments& words);
Environment environment_of(const NodesBench& job);
/// A failure if the cluster cannot be made.
void require_nodes(const NodesBench& job);

}  // namespace carillon::cli
