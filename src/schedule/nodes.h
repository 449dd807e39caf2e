// SPDX-License-Identifier: Apache-2.0
//
// Nodes: which ranks of a team share a node's memory. Agreed once per team, equal on all members;
// any deal of ranks to nodes is allowed (uneven, round robin, all on one).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace carillon {

using Rank = std::int32_t;

class Nodes {
 public:
  /// `node_of[r]` is any number that ranks of one node, and only they, share. Nodes are numbered
  /// anew, 0, 1, ..., in the order of their first ranks.
  explicit Nodes(std::span<const std::int32_t> node_of);

  [[nodiscard]] Rank ranks() const { return static_cast<Rank>(node_of_.size()); }
  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(first_.size()) - 1; }
  [[nodiscard]] std::int32_t node_of(Rank rank) const {
    return node_of_[static_cast<std::size_t>(rank)];
  }
  /// Its ranks, ascending; the first is its leader.
  [[nodiscard]] std::span<const Rank> members(std::int32_t node) const {
    const auto n = static_cast<std::size_t>(node);
    return {members_.data() + first_[n], first_[n + 1] - first_[n]};
  }
  /// The leaders, node by node.
  [[nodiscard]] std::span<const Rank> leaders() const { return leaders_; }
  /// All ranks, node by node, and how many are on the nodes before.
  [[nodiscard]] std::span<const Rank> by_node() const { return members_; }
  [[nodiscard]] Rank before(std::int32_t node) const {
    return static_cast<Rank>(first_[static_cast<std::size_t>(node)]);
  }
  /// Ranks on the largest node and on the smallest one.
  [[nodiscard]] Rank largest() const { return largest_; }
  [[nodiscard]] Rank smallest() const { return smallest_; }
  /// Whether the ranks of every node follow one another: what is reduced node by node is then in
  /// rank order.
  [[nodiscard]] bool contiguous() const { return contiguous_; }
  bool operator==(const Nodes&) const = default;

 private:
  std::vector<std::int32_t> node_of_;
  std::vector<Rank> members_;         // node by node
  std::vector<std::uint32_t> first_;  // of each node in members_, and the end
  std::vector<Rank> leaders_;
  // What every rank's schedule may ask for, of all nodes.
  Rank largest_ = 0, smallest_ = 0;
  bool contiguous_ = true;
};

}  // namespace carillon
