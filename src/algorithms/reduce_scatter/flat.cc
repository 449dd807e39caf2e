// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter.flat: one block after another, everybody puts it to its rank, which reduces what
// comes in rank order.
//
// Source: none; the obvious shape.
//
// 5 ranks, blocks a b c d e of any lengths (A: a of all ranks reduced):
//            0       1       2       3       4
//   start    abcde   abcde   abcde   abcde   abcde
//   step 0   A       .       .       .       .
//   step 1   A       B       .       .       .
//   step 4   A       B       C       D       E
//
// Cost: P alpha + (P-1) n (beta + gamma), n: the own block, for a rank alone; ranks wait for each
// other where blocks do not fit into the slots.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/order.h"
#include "algorithms/common/own_sum.h"

namespace carillon {

void emit_reduce_scatter_flat(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Rank rank = call.rank;
  const Blocks blocks = Blocks::by_tables(call);
  const Range own = blocks[rank];
  const OwnSum sum(call, b, own.length);
  for (const Rank owner : b.steps(ranks)) {
    b.segments(blocks[owner].length, call.segment_bytes(), [&](Range s) {
      if (owner != rank) {
        b.put(owner, b.input(blocks[owner].sub(s)));
        return;
      }
      reduce_in_rank_order(b, ranks, rank, sum(s), sum(s), [&](Rank from) {
        if (from == rank) return b.input(own.sub(s));
        const Message m = b.wait(from, s.length);
        return b.slot(m, Range{0, s.length});
      });
    });
  }
  sum.finish();
}

}  // namespace carillon
