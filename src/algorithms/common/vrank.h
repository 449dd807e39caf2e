// SPDX-License-Identifier: Apache-2.0
//
// Rank arithmetic that wraps around, and ranks relative to a root.
#pragma once

#include "schedule/problem.h"

namespace carillon {

/// x modulo n, in 0..n-1 also for a negative x.
constexpr Rank wrap(std::int64_t x, Rank n) {
  const auto rest = static_cast<Rank>(x % n);
  return rest < 0 ? rest + n : rest;
}

/// Ranks counted from a root: the root is vrank 0, the rank after it vrank 1.
struct Vranks {
  Rank ranks = 1;
  Rank root = 0;

  [[nodiscard]] constexpr Rank vrank(Rank rank) const { return wrap(rank - root, ranks); }
  [[nodiscard]] constexpr Rank rank(Rank vrank) const {
    return wrap(std::int64_t{vrank} + root, ranks);
  }
};

/// The ranks next to this one on the ring 0, 1, ..., ranks-1, 0. Data flows from left to right.
struct RingNeighbours {
  Rank left, right;
};
constexpr RingNeighbours ring_neighbours(Rank rank, Rank ranks) {
  return {wrap(rank - 1, ranks), wrap(std::int64_t{rank} + 1, ranks)};
}

}  // namespace carillon
