// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter.pairwise: in step i every rank puts the block of the rank i after it and reduces
// what the rank i before it put.
//
// Source: Thakur, Rabenseifner, Gropp 2005 (pairwise exchange).
//
// 5 ranks, blocks a b c d e of any lengths ([40]a: block a of x4 (op) x0):
//            0          1          2          3          4
//   step 1   [40]a      [01]b      [12]c      [23]d      [34]e
//   step 2   [340]a     [401]b     [012]c     [123]d     [234]e
//   step 4   [12340]a   [23401]b   [34012]c   [40123]d   [01234]e
//
// Cost: (P-1) alpha + (the others' blocks, or P-1 times the own one, whichever is more) beta
// + (P-1) n gamma, n: the own block.
// Restrictions: the operator must commute.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/own_sum.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_reduce_scatter_pairwise(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Rank rank = call.rank;
  const Blocks blocks = Blocks::by_tables(call);
  const Range own = blocks[rank];
  const OwnSum sum(call, b, own.length);
  for (const int step : b.steps(ranks - 1)) {
    const Rank to = wrap(std::int64_t{rank} + step + 1, ranks);
    const Rank from = wrap(rank - step - 1, ranks);
    exchange(
        b, blocks[to].length, own.length, call.segment_bytes(),
        [&](Range s) { b.put(to, b.input(blocks[to].sub(s))); },
        [&](Range s) {
          const Message m = b.wait(from, s.length);
          const Buffer before = step == 0 ? b.input(own.sub(s)) : sum(s);
          b.reduce(sum(s), b.slot(m, Range{0, s.length}), before);
        });
  }
  sum.finish();
}

}  // namespace carillon
