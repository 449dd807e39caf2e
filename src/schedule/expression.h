// SPDX-License-Identifier: Apache-2.0
//
// What a byte is, as an expression over the inputs: rank r's input, or left (op) right. Equal
// expressions are one node (hash consing), so that "the same tree on all ranks" is a comparison
// of two numbers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

using Node = std::uint32_t;

class Expressions {
 public:
  /// Nodes 0..ranks-1 are the inputs.
  explicit Expressions(Rank ranks);

  [[nodiscard]] Node input(Rank rank) const { return static_cast<Node>(rank); }
  [[nodiscard]] bool is_input(Node node) const { return node < static_cast<Node>(ranks_); }
  Node reduce(Node left, Node right);

  /// Empty if the node has the input of each of the ranks 0, ..., ranks-1 exactly once and no
  /// other, and in rank order if that is asked for; otherwise what is wrong with it.
  [[nodiscard]] std::string check_complete(Node node, Rank ranks, bool in_rank_order) const;
  /// Whether the node is ((0 op 1) op 2) ... op ranks-1.
  [[nodiscard]] bool is_left_fold(Node node, Rank ranks) const;
  /// "(0 + 1) + 2", abbreviated if it is long.
  [[nodiscard]] std::string text(Node node) const;

 private:
  struct Parts {
    Node left = 0;
    Node right = 0;
    std::uint64_t leaves = 1;  // saturating
  };
  [[nodiscard]] std::vector<Rank> leaves(Node node) const;

  Rank ranks_;
  std::vector<Parts> nodes_;
  std::unordered_map<std::uint64_t, Node> known_;
};

}  // namespace carillon
