// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.recursive_halving: in each step base ranks half a group apart exchange the
// halves of what is left and reduce the one they keep; the furthest partner comes first, so that
// block r ends at rank r. Teams that are no power of two are folded (common/fold.h).
//
// Source: Thakur, Rabenseifner, Gropp 2005.
//
// 5 ranks (base 0 2 3 4, extra 1), blocks a b c d e ([013]ab: blocks a b of x0 (op) x1 (op) x3):
//            0          1          2          3          4
//   start    [0]abcde   [1]abcde   [2]abcde   [3]abcde   [4]abcde
//   fold     [01]abcde  .          [2]abcde   [3]abcde   [4]abcde
//   step 0   [013]abc   .          [24]abc    [013]de    [24]de
//   step 1   [01234]ab  .          [01234]c   [01234]d   [01234]e
//   unfold   a          b          c          d          e
//
// Cost: log2 P alpha + (P-1) n (beta + gamma), n: one block; folding adds 2 alpha + (P+1) n beta.
// Restrictions: the operator must commute. Best for powers of two.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/fold.h"
#include "algorithms/common/order.h"
#include "algorithms/common/segments.h"

namespace carillon {
namespace {

void emit_extra(const Call& call, Builder& b, Range all) {
  const Rank proxy = Fold::other(call.rank);
  b.segments(all.length, call.segment_bytes(), [&](Range s) { b.put(proxy, b.input(s)); });
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    const Message m = b.wait(proxy, s.length);
    b.copy(b.output(s), b.slot(m, Range{0, s.length}));
  });
}

}  // namespace

void emit_reduce_scatter_block_recursive_halving(const Call& call, Builder& b) {
  const Rank rank = call.rank;
  const Rank other = Fold::other(rank);
  const Fold fold(call.shared.ranks);
  const Blocks blocks = Blocks::per_rank(call);
  const Range all = blocks.span(0, call.shared.ranks);
  const std::int64_t segment = call.segment_bytes();
  if (fold.is_extra(rank)) {
    emit_extra(call, b, all);
    return;
  }
  const bool has_extra = fold.has_extra(rank);
  const Range scratch = b.allocate_scratch(call.shared.ranks > 2 ? all.length : 0);
  const auto sum = [&](Range range) { return b.scratch(scratch.sub(range)); };
  bool untouched = true;  // the partial result is still the input
  const auto partial = [&](Range range) { return untouched ? b.input(range) : sum(range); };
  const auto take = [&](Rank peer, Range range, const Buffer& dst) {
    const Message m = b.wait(peer, range.length);
    reduce_pair(b, dst, partial(range), b.slot(m, Range{0, range.length}), peer < rank);
  };

  if (has_extra) {
    b.segments(all.length, segment, [&](Range s) { take(other, s, sum(s)); });
    untouched = false;
  }
  const Rank index = fold.index(rank);
  for (Rank mask = fold.size() / 2; mask > 0; mask /= 2) {
    const Rank partner = fold.base(index ^ mask);
    const auto half = [&](Rank at) {  // the blocks that `at` keeps in this step
      const Rank first = at / mask * mask;
      return blocks.span(fold.first(first), fold.first(first + mask));
    };
    const Range keep = half(index);
    const Range give = half(index ^ mask);
    const bool to_output = mask == 1 && !has_extra;
    exchange(
        b, give.length, keep.length, segment,
        [&](Range s) { b.put(partner, partial(give.sub(s))); },
        [&](Range s) { take(partner, keep.sub(s), to_output ? b.output(s) : sum(keep.sub(s))); });
    untouched = false;
  }
  if (!has_extra) return;
  b.segments(call.shared.block_bytes(), segment,
             [&](Range s) { b.put(other, sum(blocks[other].sub(s))); });
  b.copy(b.output(Range{0, call.shared.block_bytes()}), sum(blocks[rank]));
}

}  // namespace carillon
