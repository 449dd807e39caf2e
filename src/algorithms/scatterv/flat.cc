// SPDX-License-Identifier: Apache-2.0
//
// scatterv.flat: the root sends each rank its block. Nobody but the root knows the others'
// lengths, so no other rank can pass blocks on.
//
// Source: none; the obvious shape.
//
// 5 ranks, root 1, blocks a b c d e:
//            0      1       2      3      4
//   start    .      abcde   .      .      .
//   step 0   a      b       c      d      e
//
// Cost: (P-1) alpha + N beta at the root, N: all blocks.
// Restrictions: none.
#include "algorithms/catalogue.h"

namespace carillon {

void emit_scatterv_flat(const Call& call, Builder& b) {
  const Rank root = call.shared.root;
  if (call.rank != root) {
    b.recv(root, b.output_of(root));
    return;
  }
  for (const Rank peer : b.steps(call.shared.ranks)) {
    if (peer != root) b.send(peer, b.input_of(peer));
  }
  b.copy(b.output_of(root), b.input_of(root));
}

}  // namespace carillon
