// SPDX-License-Identifier: Apache-2.0
//
// allreduce.reduce_scatter_allgather: recursive halving, then recursive doubling of the reduced
// blocks along the same pairs. Teams that are no power of two are folded (common/fold.h).
//
// Source: Rabenseifner's algorithm; Thakur, Rabenseifner, Gropp 2005.
//
// 5 ranks (base 0 2 3 4, extra 1), blocks a b c d; [01]ab: blocks a b of x0 (op) x1:
//            0           1        2           3           4
//   start    [0]abcd     [1]abcd  [2]abcd     [3]abcd     [4]abcd
//   fold     [01]abcd    .        [2]abcd     [3]abcd     [4]abcd
//   step 0   [012]ab     .        [012]cd     [34]ab      [34]cd
//   step 1   [01234]a    .        [01234]c    [01234]b    [01234]d
//   step 2   [01234]ab   .        [01234]cd   [01234]ab   [01234]cd
//   step 3   abcd        .        abcd        abcd        abcd
//   unfold   abcd        abcd     abcd        abcd        abcd
//
// Cost: 2 log2 P alpha + 2 (P-1)/P n beta + (P-1)/P n gamma; folding adds 2 (alpha + n beta).
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/rabenseifner.h"

namespace carillon {

void emit_allreduce_reduce_scatter_allgather(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Fold fold(shared.ranks);
  const std::int64_t segment = call.segment_bytes();
  const Rank other = Fold::other(call.rank);
  if (fold.is_extra(call.rank)) {
    fold_extra(call, b);
    b.segments(shared.block_bytes(), segment, [&](Range s) {
      const Message m = b.wait(other, s.length);
      b.copy(b.output(s), b.slot(m, Range{0, s.length}));
    });
    return;
  }
  const Blocks blocks(shared.count, shared.element_bytes, fold.size());
  const std::vector<HalvingStep> steps = halving_steps(fold.index(call.rank), fold.size());

  b.phase("reduce_scatter");
  fold_and_halve(call, b, fold, blocks, steps, [&](Range range) { return b.output(range); });

  b.phase("allgather");
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Rank partner = fold.base(step->partner);
    const Range have = blocks.span(step->keep.first, step->keep.last);
    const Range get = blocks.span(step->give.first, step->give.last);
    exchange(
        b, have.length, get.length, segment,
        [&](Range s) { b.put(partner, b.output(have.sub(s))); },
        [&](Range s) {
          const Message m = b.wait(partner, s.length);
          b.copy(b.output(get.sub(s)), b.slot(m, Range{0, s.length}));
        });
  }
  if (!fold.has_extra(call.rank)) return;
  b.phase("unfold");
  b.segments(shared.block_bytes(), segment, [&](Range s) { b.put(other, b.output(s)); });
}

}  // namespace carillon
