// SPDX-License-Identifier: Apache-2.0
//
// gatherv.flat: everybody sends its block to the root. Nobody but the root knows the others'
// lengths, so no other rank can pass blocks on.
//
// Source: none; the obvious shape.
//
// 5 ranks, root 1, blocks a b c d e:
//            0      1       2      3      4
//   start    a      b       c      d      e
//   step 0   a      abcde   c      d      e
//
// Cost: (P-1) alpha + N beta at the root, N: all blocks.
// Restrictions: none.
#include "algorithms/catalogue.h"

namespace carillon {

void emit_gatherv_flat(const Call& call, Builder& b) {
  const Rank root = call.shared.root;
  if (call.rank != root) {
    b.send(root, b.input_of(root));
    return;
  }
  b.copy(b.output_of(root), b.input_of(root));
  for (const Rank peer : b.steps(call.shared.ranks)) {
    if (peer != root) b.recv(peer, b.output_of(peer));
  }
}

}  // namespace carillon
