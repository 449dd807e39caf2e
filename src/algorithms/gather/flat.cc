// SPDX-License-Identifier: Apache-2.0
//
// gather.flat: everybody puts its block to the root.
//
// Source: none; the obvious shape.
//
// 5 ranks, root 1, blocks a b c d e:
//            0      1       2      3      4
//   start    a      b       c      d      e
//   step 0   a      abcde   c      d      e
//
// Cost: alpha + (P-1) n beta at the root, n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"

namespace carillon {

void emit_gather_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Blocks blocks = Blocks::per_rank(call);
  b.segments(shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    if (call.rank != shared.root) {
      b.put(shared.root, b.input(s));
      return;
    }
    // The root's own while the others' is on its way.
    b.copy(b.output(blocks[call.rank].sub(s)), b.input(s));
    for (const Rank peer : b.steps(shared.ranks)) {
      if (peer == call.rank) continue;
      const Message m = b.wait(peer, s.length);
      b.copy(b.output(blocks[peer].sub(s)), b.slot(m, Range{0, s.length}));
    }
  });
}

}  // namespace carillon
