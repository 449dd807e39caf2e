// SPDX-License-Identifier: Apache-2.0
//
// Carriers: for each other node one rank of a node carries what all of its ranks have for it and
// get from it. Nodes take turns, so that all ranks of a node carry for as many, or one fewer.
//
//   nodes A, B, C, D of 2, 2, 2, 1 ranks     on    A      B      C      D
//                                            A     .      a0     a1     a0
//                                            B     b0     .      b0     b1
//                                            C     c1     c0     .      c0
//                                            D     d0     d0     d0     .
#pragma once

#include "algorithms/common/levels.h"
#include "algorithms/common/vrank.h"

namespace carillon {

class Carriers {
 public:
  /// Of the algorithm `id`.
  Carriers(std::string_view id, const Call& call, Builder& b)
      : levels_(id, call, b), here_(levels_.members(levels_.own())), place_(levels_.place()) {}

  [[nodiscard]] Rank size() const { return static_cast<Rank>(here_.size()); }
  /// This rank's among those of its node, and who has another one.
  [[nodiscard]] Rank place() const { return place_; }
  [[nodiscard]] Rank at(Rank place) const { return here_[static_cast<std::size_t>(place)]; }
  [[nodiscard]] std::span<const Rank> members(std::int32_t node) const {
    return levels_.members(node);
  }
  /// Whom this rank meets that carries for the node.
  [[nodiscard]] Rank partner(std::int32_t node) const { return carrier(node, levels_.own()); }
  /// Calls body(node) for those which the rank at that place of this node carries for, the next
  /// node first.
  template <typename Body>
  void for_nodes_of(Rank place, Body body) const {
    for (std::int32_t step = 1; step < levels_.nodes(); ++step) {
      const std::int32_t node = (levels_.own() + step) % levels_.nodes();
      if (carrier(levels_.own(), node) == at(place)) body(node);
    }
  }

 private:
  // Of that node for the other one.
  [[nodiscard]] Rank carrier(std::int32_t node, std::int32_t other) const {
    const Rank after = wrap(std::int64_t{other} - node - 1, levels_.nodes());
    return levels_.members(node)[static_cast<std::size_t>(after % levels_.size(node))];
  }

  Levels levels_;
  std::span<const Rank> here_;
  Rank place_;
};

}  // namespace carillon
