// SPDX-License-Identifier: Apache-2.0
//
// The reduce-scatter that opens allreduce.reduce_scatter_allgather and
// reduce.reduce_scatter_gather: fold to a power of two, then recursive halving.
#pragma once

#include "algorithms/common/blocks.h"
#include "algorithms/common/fold.h"
#include "algorithms/common/halving.h"
#include "algorithms/common/order.h"
#include "algorithms/common/segments.h"

namespace carillon {

/// An extra's part in it: its vector goes to the proxy.
inline void fold_extra(const Call& call, Builder& b) {
  b.segments(call.shared.block_bytes(), call.segment_bytes(),
             [&](Range s) { b.put(Fold::other(call.rank), b.input(s)); });
}

/// A base rank's part. `sum(range)` names the memory of a range of the vector in which partial
/// results gather; at the end the blocks steps.back().keep of it are reduced over all ranks.
template <typename Sum>
void fold_and_halve(const Call& call, Builder& b, const Fold& fold, const Blocks& blocks,
                    const std::vector<HalvingStep>& steps, Sum sum) {
  const Rank rank = call.rank;
  const std::int64_t segment = call.segment_bytes();
  bool untouched = true;  // the partial result is still the input
  const auto partial = [&](Range range) { return untouched ? b.input(range) : sum(range); };
  const auto take = [&](Rank peer, Range range) {
    const Message m = b.wait(peer, range.length);
    reduce_pair(b, sum(range), partial(range), b.slot(m, Range{0, range.length}), peer < rank);
  };
  if (fold.has_extra(rank)) {
    b.segments(call.shared.block_bytes(), segment, [&](Range s) { take(Fold::other(rank), s); });
    untouched = false;
  }
  for (const HalvingStep& step : steps) {
    const Rank partner = fold.base(step.partner);
    const Range give = blocks.span(step.give.first, step.give.last);
    const Range keep = blocks.span(step.keep.first, step.keep.last);
    exchange(
        b, give.length, keep.length, segment,
        [&](Range s) { b.put(partner, partial(give.sub(s))); },
        [&](Range s) { take(partner, keep.sub(s)); });
    untouched = false;
  }
}

}  // namespace carillon
