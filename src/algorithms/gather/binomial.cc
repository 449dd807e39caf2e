// SPDX-License-Identifier: Apache-2.0
//
// gather.binomial: up a binomial tree; a rank passes its subtree's blocks on as one run. Short
// runs are put together from the input and the children's slots without a copy.
//
// Source: the textbook binomial gather.
//
// 7 ranks, root 0, blocks a b c d e f g:
//            0         1      2      3      4      5      6
//   start    a         b      c      d      e      f      g
//   step 0   ab        .      cd     .      ef     .      g
//   step 1   abcd      .      .      .      efg    .      .
//   step 2   abcdefg   .      .      .      .      .      .
//
// Cost: ceil(log2 P) alpha + (P-1) n beta at the root, n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree_blocks.h"

namespace carillon {

void emit_gather_binomial(const Call& call, Builder& b) {
  TreeBlocks(call, b, RingTree(call, 2)).gather();
}

}  // namespace carillon
