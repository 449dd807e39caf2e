// SPDX-License-Identifier: Apache-2.0
//
// How this machine is built: what shares which cache and which memory.
#pragma once

#include <string>

#include "support/json.h"

namespace carillon::cli {

struct Cache {
  std::string name;  ///< e.g. L1d, L2
  long kib = 0;
  int threads = 0;  ///< hardware threads that share one
};

struct Topology {
  int packages = 0, numa_nodes = 0, cores = 0, threads = 0;
  std::vector<Cache> caches;
};

/// Of the cores this process may use. All zero if it cannot be found out.
Topology find_topology();

Json to_json(const Topology& topology);
/// One line for a person.
std::string to_text(const Topology& topology);

}  // namespace carillon::cli
