// SPDX-License-Identifier: Apache-2.0
//
// reduce.reduce_scatter_gather: recursive halving, then a binomial gather of the reduced blocks
// along the same pairs. Teams that are no power of two are folded (common/fold.h), with the root
// always among the base ranks.
//
// Source: Rabenseifner's algorithm; Thakur, Rabenseifner, Gropp 2005.
//
// 5 ranks, root 1 (base 1 2 3 4, extra 0), blocks a b c d; [01]ab: blocks a b of x0 (op) x1:
//            0        1           2           3           4
//   start    [0]abcd  [1]abcd     [2]abcd     [3]abcd     [4]abcd
//   fold     .        [01]abcd    [2]abcd     [3]abcd     [4]abcd
//   step 0   .        [012]ab     [012]cd     [34]ab      [34]cd
//   step 1   .        [01234]a    [01234]c    [01234]b    [01234]d
//   step 2   .        [01234]ab   [01234]cd   .           .
//   step 3   .        abcd        .           .           .
//
// Cost: 2 log2 P alpha + 2 (P-1)/P n beta + (P-1)/P n gamma; folding adds alpha + n beta.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/rabenseifner.h"

namespace carillon {

void emit_reduce_reduce_scatter_gather(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Fold fold(shared.ranks, shared.root);
  const std::int64_t segment = call.segment_bytes();
  if (fold.is_extra(call.rank)) {
    fold_extra(call, b);
    return;
  }
  const bool is_root = call.rank == shared.root;
  const Range scratch = b.allocate_scratch(is_root ? 0 : shared.block_bytes());
  const auto sum = [&](Range range) {
    return is_root ? b.output(range) : b.scratch(scratch.sub(range));
  };
  const Blocks blocks(shared.count, shared.element_bytes, fold.size());
  const Rank index = fold.index(call.rank);
  const Rank top = fold.index(shared.root);
  const std::vector<HalvingStep> steps = halving_steps(index, fold.size());

  b.phase("reduce_scatter");
  fold_and_halve(call, b, fold, blocks, steps, sum);

  b.phase("gather");
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Rank partner = fold.base(step->partner);
    const Range have = blocks.span(step->keep.first, step->keep.last);
    const Range get = blocks.span(step->give.first, step->give.last);
    if (((index ^ top) & step->mask) != 0) {  // the partner is on the root's side
      b.segments(have.length, segment, [&](Range s) { b.put(partner, sum(have.sub(s))); });
      return;
    }
    b.segments(get.length, segment, [&](Range s) {
      const Message m = b.wait(partner, s.length);
      b.copy(sum(get.sub(s)), b.slot(m, Range{0, s.length}));
    });
  }
}

}  // namespace carillon
