// SPDX-License-Identifier: Apache-2.0
#include "calibrate/on_cluster.h"

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string>

#include "cluster/cluster.h"
#include "support/failure.h"
#include "support/process.h"

namespace carillon::cli {

int on_cluster(int nodes, const std::function<int(const std::vector<pid_t>& processes)>& body) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread yet
  const char* const given = std::getenv(kNodeProcesses);
  if (given != nullptr) {
    std::vector<pid_t> processes;
    std::istringstream words(given);
    for (std::string word; std::getline(words, word, ',');) {
      pid_t process = 0;
      const char* const end = word.data() + word.size();
      const auto [behind, error] = std::from_chars(word.data(), end, process);
      if (error != std::errc() || behind != end || process < 1) {
        fail("{}={}: carillon cluster sets it, to numbers of processes", kNodeProcesses, given);
      }
      processes.push_back(process);
    }
    if (std::cmp_less(processes.size(), nodes)) {
      fail("a virtual cluster of {} nodes, but {} are needed", processes.size(), nodes);
    }
    return body(processes);
  }
  Cluster cluster;
  cluster.shape.ranks_per_node.assign(static_cast<std::size_t>(nodes), 1);
  require_cluster(cluster);
  Arguments command{own_path().string()};
  for (std::string& word : own_arguments()) command.push_back(std::move(word));
  return run_on_cluster(cluster, {.command = command});
}

}  // namespace carillon::cli
