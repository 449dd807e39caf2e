// SPDX-License-Identifier: Apache-2.0
//
// Recursive doubling for prefixes: in the step of distance d, a power of two, ranks that differ in
// that bit pair up. The lower one's partial result, over its group of d ranks, is part of the
// higher one's prefix; the higher one's is of use only if the lower one still has a partner.
//
//   5 ranks, pairs:   d=1: 0-1 2-3     d=2: 0-2 1-3     d=4: 0-4
#pragma once

#include "algorithms/common/order.h"
#include "schedule/builder.h"

namespace carillon {

/// Whether the rank has a partner at a distance beyond this one.
constexpr bool has_later_partner(Rank rank, Rank distance, Rank ranks) {
  for (std::int64_t d = std::int64_t{distance} * 2; d < ranks; d *= 2) {
    if ((rank ^ d) < ranks) return true;
  }
  return false;
}

/// The steps of call.rank for one segment: calls take(theirs, partial, later) at each lower
/// partner, with both partial results and whether this rank's is needed afterwards; take returns
/// what it is then. `combined` is scratch memory for it.
template <typename Take>
void double_prefixes(const Call& call, Builder& b, Range s, const Buffer& combined, Take take) {
  const Rank ranks = call.shared.ranks;
  Buffer partial = b.input(s);
  for (std::int64_t d = 1; d < ranks; d *= 2) {
    const auto distance = static_cast<Rank>(d);
    const Rank partner = call.rank ^ distance;
    if (partner >= ranks) continue;
    const bool is_lower = call.rank < partner;
    const bool later = has_later_partner(call.rank, distance, ranks);
    if (is_lower || has_later_partner(partner, distance, ranks)) b.put(partner, partial);
    if (is_lower && !later) continue;
    const Message m = b.wait(partner, s.length);
    const Buffer theirs = b.slot(m, Range{0, s.length});
    if (is_lower) {
      b.reduce(combined, partial, theirs);
      partial = combined;
    } else {
      partial = take(theirs, partial, later);
    }
  }
}

}  // namespace carillon
