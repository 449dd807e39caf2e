// SPDX-License-Identifier: Apache-2.0
//
// scatter.knomial: down a k-nomial tree of radix k; a rank gets its subtree's blocks as one run and
// passes on the parts. Short runs are passed on straight from the slot they arrived in. A larger k
// makes the tree flatter and the root busier.
//
// Source: the textbook k-nomial tree.
//
// 7 ranks, root 0, k = 4, blocks a b c d e f g:
//            0         1      2      3      4      5      6
//   start    abcdefg   .      .      .      .      .      .
//   step 0   abcd      .      .      .      efg    .      .
//   step 1   a         b      c      d      e      f      g
//
// Cost: ceil(log_k P) alpha + (P-1) n beta at the root, n: one block, and the calls for its
// (k-1) ceil(log_k P) messages.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree_blocks.h"

namespace carillon {

void emit_scatter_knomial(const Call& call, Builder& b) {
  TreeBlocks(call, b, RingTree(call, call.params.k)).scatter();
}

}  // namespace carillon
