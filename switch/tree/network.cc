// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/network.h"

#include <algorithm>

namespace carillon::tree {

Link& Network::connect(Cycles delay) {
  delay = std::max<Cycles>(delay, 1);
  shortest_ = std::min(shortest_, delay);
  links_.push_back(std::make_unique<Link>(delay));
  return *links_.back();
}

std::optional<Network::Stretch> Network::next_stretch() const {
  Cycles begin = kNever;
  for (const Node* node : nodes_) begin = std::min(begin, node->next());
  if (begin == kNever) return std::nullopt;
  return Stretch{begin, begin + shortest_};
}

void Network::run_nodes(const Stretch& stretch) {
  for (;;) {
    const std::size_t at = next_node_.fetch_add(1, std::memory_order_relaxed);
    if (at >= nodes_.size()) return;
    if (nodes_[at]->next() < stretch.end) nodes_[at]->run(stretch.begin, stretch.end);
  }
}

void Network::pass_links() {
  next_node_.store(0, std::memory_order_relaxed);
  for (const auto& link : links_) link->pass();
}

Cycles Network::run() {
  pass_links();
  std::optional<Stretch> stretch = next_stretch();
  Cycles end = 0;
  // The last thread that has gone through the nodes says what comes next to all.
  const auto proceed = [&]() noexcept {
    end = stretch->end;
    pass_links();
    stretch = next_stretch();
  };
  std::barrier all(threads_, proceed);
  const auto work = [&] {
    while (stretch) {
      run_nodes(*stretch);
      all.arrive_and_wait();
    }
  };
  if (!stretch) return end;
  std::vector<std::jthread> others;
  for (int i = 1; i < threads_; ++i) others.emplace_back(work);
  work();
  return end;
}

}  // namespace carillon::tree
