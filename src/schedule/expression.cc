// SPDX-License-Identifier: Apache-2.0
#include "schedule/expression.h"

#include <algorithm>
#include <limits>

namespace carillon {
namespace {

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

}  // namespace

void Expressions::begin(Rank ranks) {
  ranks_ = ranks;
  nodes_.assign(static_cast<std::size_t>(ranks), {});
  known_.clear();
}

Node Expressions::reduce(Node left, Node right) {
  Node& known = known_[static_cast<std::int64_t>((std::uint64_t{left} << 32) | right)];
  if (known == 0) {
    known = static_cast<Node>(nodes_.size());
    nodes_.push_back({left, right, saturating_sum(nodes_[left].leaves, nodes_[right].leaves)});
  }
  return known;
}

// In order. Only for nodes of few leaves: a bad schedule can double them with every op.
std::vector<Rank> Expressions::leaves(Node node) const {
  std::vector<Rank> found;
  std::vector<Node> open{node};
  while (!open.empty()) {
    const Node next = open.back();
    open.pop_back();
    if (is_input(next)) {
      found.push_back(static_cast<Rank>(next));
    } else {
      open.push_back(nodes_[next].right);
      open.push_back(nodes_[next].left);
    }
  }
  return found;
}

std::string Expressions::check_complete(Node node, Rank ranks, bool in_rank_order) const {
  if (nodes_[node].leaves > 4 * static_cast<std::uint64_t>(ranks_)) {
    return "has " + std::to_string(nodes_[node].leaves) + " contributions of " +
           std::to_string(ranks_) + " ranks";
  }
  const std::vector<Rank> found = leaves(node);
  std::vector<int> times(static_cast<std::size_t>(ranks_));
  for (const Rank rank : found) ++times[static_cast<std::size_t>(rank)];
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const int count = times[static_cast<std::size_t>(rank)];
    if (count == (rank < ranks ? 1 : 0)) continue;
    if (rank >= ranks)
      return "has the contribution of rank " + std::to_string(rank) + ": " + text(node);
    return (count == 0 ? "lacks the contribution of rank "
                       : "has more than once the contribution of rank ") +
           std::to_string(rank) + ": " + text(node);
  }
  if (in_rank_order && !std::is_sorted(found.begin(), found.end())) {
    return "is not in rank order, which this operator needs: " + text(node);
  }
  return {};
}

bool Expressions::is_left_fold(Node node, Rank ranks) const {
  for (Rank rank = ranks - 1; rank > 0; --rank) {
    if (is_input(node) || nodes_[node].right != input(rank)) return false;
    node = nodes_[node].left;
  }
  return node == input(0);
}

std::string Expressions::text(Node node) const {
  if (is_input(node)) return std::to_string(node);
  if (nodes_[node].leaves > 32) {
    return "an expression of " + std::to_string(nodes_[node].leaves) + " contributions";
  }
  return "(" + text(nodes_[node].left) + " + " + text(nodes_[node].right) + ")";
}

}  // namespace carillon
