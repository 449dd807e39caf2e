// SPDX-License-Identifier: Apache-2.0
//
// What a byte is, as an expression over the inputs: rank r's input, or left (op) right. Equal
// expressions are one node (hash consing), so that "the same tree on all ranks" is a comparison
// of two numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/stamped_map.h"
#include "schedule/problem.h"

namespace carillon {

using Node = std::uint32_t;

class Expressions {
 public:
  /// Nothing but the inputs, nodes 0..ranks-1. In the memory that is there.
  void begin(Rank ranks);

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

  Rank ranks_ = 0;
  std::vector<Parts> nodes_;
  StampedMap<Node> known_;  // by operands; 0, which is an input: not yet
};

}  // namespace carillon
