// SPDX-License-Identifier: Apache-2.0
//
// The k-nomial tree on vranks 0..ranks-1; radix 2 is the binomial tree. Subtrees are runs of
// vranks, so that a reduction that takes own data, then the children in ascending order, is in
// rank order.
//
//   radix 2, 7 ranks        radix 4, 7 ranks
//          0                        0
//       /  |  \                 / / | \.
//      1   2   4               1 2  3  4
//          |  / \.                    / \.
//          3 5   6                   5   6
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "schedule/problem.h"

namespace carillon {

struct Knomial {
  Rank ranks = 1;
  Rank radix = 2;

  /// -1 for vrank 0.
  [[nodiscard]] Rank parent(Rank v) const {
    if (v == 0) return -1;
    if (radix == 2) return v & (v - 1);
    const std::int64_t above = reach(v) * radix;
    return static_cast<Rank>(v / above * above);
  }

  /// v's subtree is v, v+1, ..., v+span-1.
  [[nodiscard]] Rank span(Rank v) const {
    return static_cast<Rank>(std::min<std::int64_t>(reach(v), ranks - v));
  }

  /// Ascending, which is also from the smallest subtree to the largest.
  [[nodiscard]] std::vector<Rank> children(Rank v) const {
    std::vector<Rank> list;
    const std::int64_t end = v + reach(v);
    for (std::int64_t mask = 1; v + mask < std::min<std::int64_t>(end, ranks); mask *= radix) {
      for (std::int64_t child = v + mask; child < v + mask * radix && child < ranks;
           child += mask) {
        list.push_back(static_cast<Rank>(child));
      }
    }
    return list;
  }

 private:
  // The largest power of the radix that divides v; for 0 the first that holds all ranks.
  [[nodiscard]] std::int64_t reach(Rank v) const {
    if (radix == 2) {
      return v == 0 ? std::int64_t{std::bit_ceil(static_cast<std::uint32_t>(ranks))} : v & -v;
    }
    std::int64_t mask = 1;
    while (mask < ranks && v % (mask * radix) == 0) mask *= radix;
    return mask;
  }
};

}  // namespace carillon
