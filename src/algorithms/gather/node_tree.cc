// SPDX-License-Identifier: Apache-2.0
//
// gather.node_tree: in each node up a k-nomial tree to its leader, then between the leaders up a
// k-nomial tree, the blocks of a node and of those below it in one message. The root leads its
// node. Short runs are put together from the input and the children's slots without a copy.
//
// Source: none; gather.knomial twice, in one order of the ranks.
//
// 7 ranks on nodes 3, 1, 3, root 0, k = 4, blocks a b c d e f g:
//            0         1      2   |  3   |  4      5      6
//   start    a         b      c   |  d   |  e      f      g
//   step 0   abc       .      .   |  d   |  efg    .      .
//   step 1   abcdefg   .      .   |  .   |  .      .      .
//
// Cost (N nodes of R ranks, n: one block): ceil(log_k R) alpha in the nodes and ceil(log_k N)
// between them, (P-R) n beta at the root's NIC.
// Restrictions: none. Where nodes' ranks do not follow one another, the root sorts what comes.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree_blocks.h"

namespace carillon {

void emit_gather_node_tree(const Call& call, Builder& b) {
  TreeBlocks(call, b, NodeTree(call, call.params.k)).gather();
}

}  // namespace carillon
