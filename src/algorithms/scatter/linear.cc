// SPDX-License-Identifier: Apache-2.0
//
// scatter.linear: the root sends each block to its rank, which receives it where it belongs: what
// scatterv.flat does with tables.
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

void emit_scatter_linear(const Call& call, Builder& b) {
  const Rank root = call.shared.root;
  const Blocks blocks = Blocks::per_rank(call);
  const Range own{0, call.shared.block_bytes()};
  if (call.rank != root) {
    b.recv(root, b.output(own));
    return;
  }
  for (const Rank peer : b.steps(call.shared.ranks)) {
    if (peer != root) b.send(peer, b.input(blocks[peer]));
  }
  b.copy(b.output(own), b.input(blocks[root]));
}

}  // namespace carillon
