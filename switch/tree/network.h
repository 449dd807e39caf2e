// SPDX-License-Identifier: Apache-2.0
//
// Nodes with links between them, cycle by cycle. What is sent arrives no earlier than the shortest
// link's delay later: so many cycles each node goes through by itself, before what it has sent is
// passed on. So the order of the nodes, and how many threads there are, makes no difference. A
// stretch in which a node has nothing to do it does not go through.
#pragma once

#include <atomic>
#include <barrier>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "switch/tree/link.h"

namespace carillon::tree {

class Network {
 public:
  explicit Network(int threads) : threads_(threads) {}

  Link& connect(Cycles delay);
  /// Those that take long first. The node lives as long.
  void add(Node& node) { nodes_.push_back(&node); }

  /// Until nobody has anything to do. The first cycle after that.
  Cycles run();

 private:
  struct Stretch {
    Cycles begin = 0, end = 0;
  };

  [[nodiscard]] std::optional<Stretch> next_stretch() const;
  void run_nodes(const Stretch& stretch);  // by each thread
  void pass_links();

  int threads_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Node*> nodes_;
  Cycles shortest_ = kNever;
  std::atomic<std::size_t> next_node_ = 0;
};

}  // namespace carillon::tree
