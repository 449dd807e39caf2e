// SPDX-License-Identifier: Apache-2.0
//
// Trees over *positions*: the root is position 0, a subtree is a run of positions. A k-nomial tree
// goes around the ranks from the root on; a node tree goes node by node, the root's first: k-nomial
// between the leaders and again in each node, so that what two nodes have for one another goes
// between them once.
//
//   7 ranks on nodes 3, 1, 3, root 4, radix 2
//   positions   4 5 6 | 0 1 2 | 3        4 -> 0, 3 between nodes
//   ranks         4 -> 5, 6  0 -> 1, 2
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/common/knomial.h"
#include "algorithms/common/vrank.h"

namespace carillon {

/// Ranks first, ..., first + count - 1.
struct RankRun {
  Rank first, count;
};

class RingTree {
 public:
  RingTree(const Call& call, Rank radix)
      : vranks_{call.shared.ranks, call.shared.root}, tree_{call.shared.ranks, radix} {}

  [[nodiscard]] Rank position(Rank rank) const { return vranks_.vrank(rank); }
  [[nodiscard]] Rank rank(Rank position) const { return vranks_.rank(position); }
  [[nodiscard]] Rank parent(Rank position) const { return tree_.parent(position); }
  /// Ascending, as in Knomial.
  [[nodiscard]] std::vector<Rank> children(Rank position) const { return tree_.children(position); }
  [[nodiscard]] Rank span(Rank position) const { return tree_.span(position); }
  /// Of the subtree, in the order of positions.
  [[nodiscard]] std::vector<RankRun> runs(Rank position) const {
    const Rank first = rank(position), before_wrap = std::min(span(position), tree_.ranks - first);
    std::vector<RankRun> list{{first, before_wrap}};
    if (before_wrap < span(position)) list.push_back({0, span(position) - before_wrap});
    return list;
  }

 private:
  Vranks vranks_;
  Knomial tree_;
};

class NodeTree {
 public:
  NodeTree(const Call& call, Rank radix) : radix_(radix) {
    const Rank root = call.shared.root;
    if (call.limits.one_node()) {
      order_.resize(static_cast<std::size_t>(call.shared.ranks));
      std::iota(order_.begin(), order_.end(), 0);
    } else {
      const Nodes& nodes = *call.limits.nodes;
      const std::int32_t first = nodes.node_of(root);
      for (std::int32_t i = 0; i < nodes.count(); ++i) {
        starts_.push_back(static_cast<Rank>(order_.size()));
        const auto members = nodes.members((first + i) % nodes.count());
        order_.insert(order_.end(), members.begin(), members.end());
      }
    }
    if (starts_.empty()) starts_.push_back(0);
    // The root leads its node.
    const auto at = std::find(order_.begin(), order_.end(), root);
    std::rotate(order_.begin(), at, at + 1);
    starts_.push_back(static_cast<Rank>(order_.size()));
  }

  [[nodiscard]] Rank position(Rank rank) const {
    return static_cast<Rank>(std::find(order_.begin(), order_.end(), rank) - order_.begin());
  }
  [[nodiscard]] Rank rank(Rank position) const {
    return order_[static_cast<std::size_t>(position)];
  }
  [[nodiscard]] Rank parent(Rank position) const {
    const Rank node = node_of(position), start = starts(node);
    if (position > start) return start + inner(node).parent(position - start);
    return node == 0 ? -1 : starts(outer().parent(node));
  }
  /// Ascending: those of the same node first.
  [[nodiscard]] std::vector<Rank> children(Rank position) const {
    const Rank node = node_of(position), start = starts(node);
    std::vector<Rank> list = inner(node).children(position - start);
    for (Rank& child : list) child += start;
    if (position > start) return list;
    for (const Rank below : outer().children(node)) list.push_back(starts(below));
    return list;
  }
  [[nodiscard]] Rank span(Rank position) const {
    const Rank node = node_of(position), start = starts(node);
    if (position > start) return inner(node).span(position - start);
    return starts(node + outer().span(node)) - start;
  }
  [[nodiscard]] std::vector<RankRun> runs(Rank position) const {
    std::vector<RankRun> list;
    for (Rank i = position; i < position + span(position); ++i) {
      if (!list.empty() && list.back().first + list.back().count == rank(i)) {
        ++list.back().count;
      } else {
        list.push_back({rank(i), 1});
      }
    }
    return list;
  }

 private:
  // Of the nodes in the order of positions; as many starts as nodes and one.
  [[nodiscard]] Rank starts(Rank node) const { return starts_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] Rank node_of(Rank position) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
    return static_cast<Rank>(after - starts_.begin()) - 1;
  }
  [[nodiscard]] Knomial outer() const { return {static_cast<Rank>(starts_.size()) - 1, radix_}; }
  [[nodiscard]] Knomial inner(Rank node) const { return {starts(node + 1) - starts(node), radix_}; }

  Rank radix_;
  std::vector<Rank> order_, starts_;
};

}  // namespace carillon
