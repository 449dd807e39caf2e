// SPDX-License-Identifier: Apache-2.0
//
// scatter.binomial: down a binomial tree; a rank gets its subtree's blocks as one run and passes
// on the parts. Short runs are passed on straight from the slot they arrived in.
//
// Source: the textbook binomial scatter.
//
// 7 ranks, root 0, blocks a b c d e f g:
//            0         1      2      3      4      5      6
//   start    abcdefg   .      .      .      .      .      .
//   step 0   abcd      .      .      .      efg    .      .
//   step 1   ab        .      cd     .      ef     .      g
//   step 2   a         b      c      d      e      f      g
//
// Cost: ceil(log2 P) alpha + (P-1) n beta at the root, n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree_blocks.h"

namespace carillon {

void emit_scatter_binomial(const Call& call, Builder& b) {
  TreeBlocks(call, b, RingTree(call, 2)).scatter();
}

}  // namespace carillon
