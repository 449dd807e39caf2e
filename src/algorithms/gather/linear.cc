// SPDX-License-Identifier: Apache-2.0
//
// gather.linear: everybody sends its block to the root, which receives it where it belongs: what
// gatherv.flat does with tables.
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

void emit_gather_linear(const Call& call, Builder& b) {
  const Rank root = call.shared.root;
  const Blocks blocks = Blocks::per_rank(call);
  const Range own{0, call.shared.block_bytes()};
  if (call.rank != root) {
    b.send(root, b.input(own));
    return;
  }
  b.copy(b.output(blocks[root]), b.input(own));
  for (const Rank peer : b.steps(call.shared.ranks)) {
    if (peer != root) b.recv(peer, b.output(blocks[peer]));
  }
}

}  // namespace carillon
