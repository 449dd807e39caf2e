// SPDX-License-Identifier: Apache-2.0
//
// scatter.flat: the root puts each block to its rank.
//
// Source: none; the obvious shape.
//
// 5 ranks, root 1, blocks a b c d e:
//            0      1       2      3      4
//   start    .      abcde   .      .      .
//   step 0   a      b       c      d      e
//
// Cost: (P-1) (alpha + n beta) at the root, n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"

namespace carillon {

void emit_scatter_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Blocks blocks = Blocks::per_rank(call);
  b.segments(shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    if (call.rank != shared.root) {
      const Message m = b.wait(shared.root, s.length);
      b.copy(b.output(s), b.slot(m, Range{0, s.length}));
      return;
    }
    for (const Rank peer : b.steps(shared.ranks)) {
      if (peer != call.rank) b.put(peer, b.input(blocks[peer].sub(s)));
    }
    // The root's own while the others' is on its way.
    b.copy(b.output(s), b.input(blocks[call.rank].sub(s)));
  });
}

}  // namespace carillon
