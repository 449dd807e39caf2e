// SPDX-License-Identifier: Apache-2.0
//
// The two levels of the hierarchical algorithms: the group of the ranks of one node, and the group
// of the *leaders*, one rank per node. What is done on each is another algorithm of the registry,
// emitted on that group.
//
//   7 ranks on nodes 3, 1, 3        node    0 1 2 | 3 | 4 5 6
//                                   leaders 0       3   4
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/registry.h"

namespace carillon {

class Levels {
 public:
  /// Of the algorithm `id`. `root` leads its node, the first rank every other one.
  Levels(std::string_view id, const Call& call, Builder& b, Rank root = -1)
      : algorithm_(*find_algorithm(id)), call_(call), b_(b) {
    const Rank ranks = call.shared.ranks;
    const std::int32_t count = call.limits.one_node() ? 1 : call.limits.nodes->count();
    for (Rank rank = 0; count == 1 && rank < ranks; ++rank) order_.push_back(rank);
    for (std::int32_t node = 0; node < count; ++node) {
      firsts_.push_back(count == 1 ? 0 : static_cast<Rank>(order_.size()));
      if (count > 1) {
        const std::span<const Rank> on_it = call.limits.nodes->members(node);
        order_.insert(order_.end(), on_it.begin(), on_it.end());
      }
      sizes_.push_back(static_cast<Rank>(order_.size()) - first(node));
      const std::span<const Rank> on_it = members(node);
      const bool has_root = std::find(on_it.begin(), on_it.end(), root) != on_it.end();
      leaders_.push_back(has_root ? root : on_it.front());
      if (std::find(on_it.begin(), on_it.end(), call.rank) != on_it.end()) own_ = node;
      if (has_root) root_node_ = node;
    }
  }

  [[nodiscard]] std::int32_t nodes() const { return static_cast<std::int32_t>(sizes_.size()); }
  /// The number of this rank's node.
  [[nodiscard]] std::int32_t own() const { return own_; }
  [[nodiscard]] std::span<const Rank> members(std::int32_t node) const {
    return std::span(order_).subspan(static_cast<std::size_t>(first(node)),
                                     static_cast<std::size_t>(size(node)));
  }
  [[nodiscard]] Rank size(std::int32_t node) const {
    return sizes_[static_cast<std::size_t>(node)];
  }
  /// Ranks on the nodes before.
  [[nodiscard]] Rank first(std::int32_t node) const {
    return firsts_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] bool is_leader() const { return leader(own_) == call_.rank; }
  /// Whether this rank has its node to itself.
  [[nodiscard]] bool is_alone() const { return size(own_) == 1; }
  /// Whether all nodes have as many ranks.
  [[nodiscard]] bool are_even() const {
    return std::all_of(sizes_.begin(), sizes_.end(), [&](Rank size) { return size == sizes_[0]; });
  }
  /// This rank's among those of its node.
  [[nodiscard]] Rank place() const { return index(members(own_), call_.rank); }
  /// Whether going through the nodes one by one is going through the ranks in order.
  [[nodiscard]] bool in_rank_order() const { return std::is_sorted(order_.begin(), order_.end()); }

  /// What the level does within this rank's node, rooted at the leader.
  void on_node(std::size_t level, std::int64_t count, const Buffer& input,
               const Buffer& output) const {
    const std::span<const Rank> group = members(own_);
    b_.phase("node");
    emit(level, count, group, index(group, leader(own_)), input, output, {});
  }
  /// What the level does among all ranks.
  void on_all(std::size_t level, Rank root, std::int64_t count, const Buffer& input,
              const Buffer& output) const {
    std::vector<Rank> all(static_cast<std::size_t>(call_.shared.ranks));
    std::iota(all.begin(), all.end(), 0);
    b_.phase("all");
    emit(level, count, all, root, input, output, {}, true);
  }
  /// What the leaders would do, done by the ranks in the same place of their nodes, which are even.
  void on_lane(std::int64_t count, const Buffer& input, const Buffer& output) const {
    std::vector<Rank> lane;
    for (std::int32_t node = 0; node < nodes(); ++node) {
      lane.push_back(members(node)[static_cast<std::size_t>(place())]);
    }
    b_.phase("lanes");
    emit(Algorithm::kLeaders, count, lane, 0, input, output, {});
  }
  /// What the leaders do, rooted at the leader of the root's node; nothing on other ranks.
  void on_leaders(std::int64_t count, const Buffer& input, const Buffer& output) const {
    if (!is_leader()) return;
    b_.phase("leaders");
    emit(Algorithm::kLeaders, count, leaders_, root_node_, input, output, {});
  }
  /// The same where each leader has `count` elements for every rank of its node.
  void on_leaders_for_all(std::int64_t count, const Buffer& input, const Buffer& output) const {
    if (!is_leader()) return;
    b_.phase("leaders");
    emit(Algorithm::kLeaders, count, leaders_, root_node_, input, output, sizes_);
  }

 private:
  [[nodiscard]] Rank leader(std::int32_t node) const {
    return leaders_[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] static Rank index(std::span<const Rank> group, Rank rank) {
    return static_cast<Rank>(std::find(group.begin(), group.end(), rank) - group.begin());
  }
  void emit(std::size_t level, std::int64_t count, std::span<const Rank> group, Rank root,
            const Buffer& input, const Buffer& output, std::span<const Rank> weights,
            bool whole = false) const {
    const AlgorithmChoice choice = level_choice(algorithm_, level, call_.params);
    emit_on({.shared = {.collective = choice.algorithm->collective,
                        .root = root,
                        .count = count,
                        .element_bytes = call_.shared.element_bytes,
                        .commutative = call_.shared.commutative},
             .rank = index(group, call_.rank),
             .members = group,
             .input = input,
             .output = output,
             .weights = weights,
             .whole = whole},
            choice, call_, b_);
  }

  const Algorithm& algorithm_;
  const Call& call_;
  Builder& b_;
  std::vector<Rank> order_;    // the ranks, node by node
  std::vector<Rank> sizes_;    // of the nodes,
  std::vector<Rank> firsts_;   // and the ranks before each
  std::vector<Rank> leaders_;  // of the nodes
  std::int32_t own_ = 0, root_node_ = 0;
};

}  // namespace carillon
