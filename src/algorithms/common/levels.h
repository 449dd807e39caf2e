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
      : algorithm_(*find_algorithm(id)),
        call_(call),
        b_(b),
        nodes_(call.limits.one_node() ? nullptr : call.limits.nodes.get()),
        root_(root),
        own_(node_of(call.rank)),
        root_node_(node_of(std::max(root, 0))) {
    if (nodes_ != nullptr) return;
    alone_.resize(static_cast<std::size_t>(call.shared.ranks));
    std::iota(alone_.begin(), alone_.end(), 0);
  }

  [[nodiscard]] std::int32_t nodes() const { return nodes_ != nullptr ? nodes_->count() : 1; }
  /// The number of this rank's node.
  [[nodiscard]] std::int32_t own() const { return own_; }
  [[nodiscard]] std::span<const Rank> members(std::int32_t node) const {
    return nodes_ != nullptr ? nodes_->members(node) : std::span<const Rank>(alone_);
  }
  [[nodiscard]] Rank size(std::int32_t node) const {
    return static_cast<Rank>(members(node).size());
  }
  /// Ranks on the nodes before.
  [[nodiscard]] Rank first(std::int32_t node) const {
    return nodes_ != nullptr ? nodes_->before(node) : 0;
  }
  [[nodiscard]] bool is_leader() const { return leader(own_) == call_.rank; }
  /// Whether this rank has its node to itself.
  [[nodiscard]] bool is_alone() const { return size(own_) == 1; }
  /// Whether all nodes have as many ranks.
  [[nodiscard]] bool are_even() const {
    return nodes_ == nullptr || nodes_->largest() == nodes_->smallest();
  }
  /// This rank's among those of its node.
  [[nodiscard]] Rank place() const { return index(members(own_), call_.rank); }
  /// Whether going through the nodes one by one is going through the ranks in order.
  [[nodiscard]] bool in_rank_order() const { return nodes_ == nullptr || nodes_->contiguous(); }

  /// What the level does within this rank's node, rooted at the leader.
  void on_node(std::size_t level, std::int64_t count, const Buffer& input,
               const Buffer& output) const {
    const std::span<const Rank> group = members(own_);
    b_.phase("node");
    emit(level, count, {.members = Members(group), .rank = place()}, index(group, leader(own_)),
         input, output);
  }
  /// What the level does among all ranks.
  void on_all(std::size_t level, Rank root, std::int64_t count, const Buffer& input,
              const Buffer& output) const {
    b_.phase("all");
    Group all{.members = Members::all(call_.shared.ranks), .rank = call_.rank};
    all.whole = true;
    emit(level, count, all, root, input, output);
  }
  /// What the leaders would do, done by the ranks in the same place of their nodes, which are even.
  void on_lane(std::int64_t count, const Buffer& input, const Buffer& output) const {
    std::vector<Rank> lane;
    for (std::int32_t node = 0; node < nodes(); ++node) {
      lane.push_back(members(node)[static_cast<std::size_t>(place())]);
    }
    b_.phase("lanes");
    emit(Algorithm::kLeaders, count, {.members = lane, .rank = own_}, 0, input, output);
  }
  /// What the leaders do, rooted at the leader of the root's node; nothing on other ranks.
  void on_leaders(std::int64_t count, const Buffer& input, const Buffer& output) const {
    if (!is_leader()) return;
    b_.phase("leaders");
    emit(Algorithm::kLeaders, count, leaders(), root_node_, input, output);
  }
  /// The same where each leader has `count` elements for every rank of its node.
  void on_leaders_for_all(std::int64_t count, const Buffer& input, const Buffer& output) const {
    if (!is_leader()) return;
    b_.phase("leaders");
    std::vector<Rank> sizes;
    sizes.reserve(static_cast<std::size_t>(nodes()));
    for (std::int32_t node = 0; node < nodes(); ++node) sizes.push_back(size(node));
    Group group = leaders();
    group.weights = sizes;
    emit(Algorithm::kLeaders, count, group, root_node_, input, output);
  }

 private:
  // Whom a level is emitted on, this rank's place among them, and how many ranks each stands for.
  struct Group {
    Members members;
    Rank rank = 0;
    std::span<const Rank> weights = {};
    bool whole = false;
  };

  [[nodiscard]] std::int32_t node_of(Rank rank) const {
    return nodes_ != nullptr ? nodes_->node_of(rank) : 0;
  }
  [[nodiscard]] Rank leader(std::int32_t node) const {
    return root_ >= 0 && node == root_node_ ? root_ : members(node).front();
  }
  [[nodiscard]] Group leaders() const {
    const Members firsts = nodes_ != nullptr ? Members(nodes_->leaders()) : Members::all(1);
    return {.members = firsts.with(root_node_, leader(root_node_)), .rank = own_};
  }
  [[nodiscard]] static Rank index(std::span<const Rank> group, Rank rank) {
    return static_cast<Rank>(std::find(group.begin(), group.end(), rank) - group.begin());
  }
  void emit(std::size_t level, std::int64_t count, const Group& group, Rank root,
            const Buffer& input, const Buffer& output) const {
    const AlgorithmChoice choice = level_choice(algorithm_, level, call_.params);
    emit_on({.shared = {.collective = choice.algorithm->collective,
                        .root = root,
                        .count = count,
                        .element_bytes = call_.shared.element_bytes,
                        .commutative = call_.shared.commutative},
             .rank = group.rank,
             .members = group.members,
             .input = input,
             .output = output,
             .weights = group.weights,
             .whole = group.whole},
            choice, call_, b_);
  }

  const Algorithm& algorithm_;
  const Call& call_;
  Builder& b_;
  const Nodes* nodes_;  // null: all ranks are on one node,
  Rank root_;
  std::int32_t own_, root_node_;
  std::vector<Rank> alone_;  // which is this
};

}  // namespace carillon
