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
  NodeTree(const Call& call, Rank radix)
      : radix_(radix),
        ranks_(call.shared.ranks),
        root_(call.shared.root),
        nodes_(call.limits.one_node() ? nullptr : call.limits.nodes.get()),
        first_(nodes_ != nullptr ? nodes_->node_of(root_) : 0),
        root_place_(place(root_)) {}

  [[nodiscard]] Rank position(Rank rank) const {
    const Rank node = nodes_ != nullptr ? wrap(nodes_->node_of(rank) - first_, nodes()) : 0;
    if (node > 0) return starts(node) + place(rank);
    // The root leads its node.
    if (rank == root_) return 0;
    return place(rank) < root_place_ ? place(rank) + 1 : place(rank);
  }
  [[nodiscard]] Rank rank(Rank position) const {
    const Rank node = node_of(position);
    Rank on_node = position - starts(node);
    if (node == 0 && on_node <= root_place_) on_node = on_node > 0 ? on_node - 1 : root_place_;
    return nodes_ != nullptr ? nodes_->by_node()[static_cast<std::size_t>(before(node) + on_node)]
                             : on_node;
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
    const Rank end = position + span(position);
    for (Rank i = position; i < end; ++i) {
      if (!list.empty() && list.back().first + list.back().count == rank(i)) {
        ++list.back().count;
      } else {
        list.push_back({rank(i), 1});
      }
    }
    return list;
  }

 private:
  // Of the nodes in the order of positions, and, as if there were one more, the end.
  [[nodiscard]] Rank starts(Rank node) const {
    if (node == nodes()) return ranks_;
    return node > 0 ? wrap(before(node) - before(0), ranks_) : 0;
  }
  [[nodiscard]] Rank node_of(Rank position) const {
    if (nodes_ == nullptr) return 0;
    const auto at = static_cast<std::size_t>(wrap(std::int64_t{before(0)} + position, ranks_));
    return wrap(nodes_->node_of(nodes_->by_node()[at]) - first_, nodes());
  }
  [[nodiscard]] Rank nodes() const { return nodes_ != nullptr ? nodes_->count() : 1; }
  // By node: how many ranks are on those that the team counts before it.
  [[nodiscard]] Rank before(Rank node) const {
    return nodes_ != nullptr ? nodes_->before(wrap(std::int64_t{first_} + node, nodes())) : 0;
  }
  // Among the ranks of its node, in their order.
  [[nodiscard]] Rank place(Rank rank) const {
    if (nodes_ == nullptr) return rank;
    const auto on_it = nodes_->members(nodes_->node_of(rank));
    return static_cast<Rank>(std::lower_bound(on_it.begin(), on_it.end(), rank) - on_it.begin());
  }
  [[nodiscard]] Knomial outer() const { return {nodes(), radix_}; }
  [[nodiscard]] Knomial inner(Rank node) const { return {starts(node + 1) - starts(node), radix_}; }

  Rank radix_, ranks_, root_;
  const Nodes* nodes_;  // null: all ranks are on one node
  std::int32_t first_;  // the root's
  Rank root_place_;     // on it
};

}  // namespace carillon
