// SPDX-License-Identifier: Apache-2.0
//
// allgather.recursive_doubling: in step i base ranks 2^i apart exchange all they have; teams that
// are no power of two are folded (common/fold.h).
//
// Source: Thakur, Rabenseifner, Gropp 2005.
//
// 5 ranks (base 0 2 3 4, extra 1), blocks a b c d e:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   fold     ab      b       c       d       e
//   step 0   abc     b       abc     de      de
//   step 1   abcde   b       abcde   abcde   abcde
//   unfold   abcde   abcde   abcde   abcde   abcde
//
// Cost: log2 P alpha + (P-1) n beta, n: one block; folding adds 2 alpha + (P+1) n beta.
// Restrictions: none. Best for powers of two.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/fold.h"
#include "algorithms/common/segments.h"

namespace carillon {
namespace {

// Puts or takes `range` of the output by segments.
void give(const Call& call, Builder& b, Rank peer, Range range) {
  b.segments(range.length, call.segment_bytes(),
             [&](Range s) { b.put(peer, b.output(range.sub(s))); });
}

void get(const Call& call, Builder& b, Rank peer, Range range) {
  b.segments(range.length, call.segment_bytes(), [&](Range s) {
    const Message m = b.wait(peer, s.length);
    b.copy(b.output(range.sub(s)), b.slot(m, Range{0, s.length}));
  });
}

}  // namespace

void emit_allgather_recursive_doubling(const Call& call, Builder& b) {
  const Rank rank = call.rank;
  const Rank other = Fold::other(rank);
  const Fold fold(call.shared.ranks);
  const Blocks blocks = Blocks::per_rank(call);
  const Range all = blocks.span(0, call.shared.ranks);
  const Range own{0, blocks[rank].length};
  const auto copy_own = [&] { b.copy(b.output(blocks[rank]), b.input(own)); };

  if (fold.is_extra(rank)) {
    b.segments(own.length, call.segment_bytes(), [&](Range s) { b.put(other, b.input(s)); });
    get(call, b, other, all);
    return;
  }
  const bool has_extra = fold.has_extra(rank);
  if (has_extra) {
    copy_own();
    get(call, b, other, blocks[other]);
  }
  const Rank index = fold.index(rank);
  const auto held = [&](Rank at, Rank mask) {  // what base index `at` has before step `mask`
    const Rank first = at / mask * mask;
    return blocks.span(fold.first(first), fold.first(first + mask));
  };
  for (Rank mask = 1; mask < fold.size(); mask *= 2) {
    const Rank partner = fold.base(index ^ mask);
    const Range out = held(index, mask);
    const Range in = held(index ^ mask, mask);
    const bool from_input = mask == 1 && !has_extra;
    exchange(
        b, out.length, in.length, call.segment_bytes(),
        [&](Range s) { b.put(partner, from_input ? b.input(s) : b.output(out.sub(s))); },
        [&](Range s) {
          const Message m = b.wait(partner, s.length);
          b.copy(b.output(in.sub(s)), b.slot(m, Range{0, s.length}));
        });
    if (from_input) copy_own();
  }
  if (has_extra) give(call, b, other, all);
}

}  // namespace carillon
