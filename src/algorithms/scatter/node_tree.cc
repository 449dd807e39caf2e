// SPDX-License-Identifier: Apache-2.0
//
// scatter.node_tree: to the leaders of the nodes down a k-nomial tree, the blocks of a node and of
// those below it in one message; in each node down a k-nomial tree to its ranks. The root leads its
// node. Short runs are passed on straight from the slot they arrived in.
//
// Source: none; scatter.knomial twice, in one order of the ranks.
//
// 7 ranks on nodes 3, 1, 3, root 0, k = 4, blocks a b c d e f g:
//            0         1      2   |  3   |  4      5      6
//   start    abcdefg   .      .   |  .   |  .      .      .
//   step 0   abc       .      .   |  d   |  efg    .      .
//   step 1   a         b      c   |  d   |  e      f      g
//
// Cost (N nodes of R ranks, n: one block): ceil(log_k N) alpha between nodes and ceil(log_k R) in
// them, (P-R) n beta at the root's NIC.
// Restrictions: none. Where nodes' ranks do not follow one another, the root's messages are lists.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree_blocks.h"

namespace carillon {

void emit_scatter_node_tree(const Call& call, Builder& b) {
  TreeBlocks(call, b, NodeTree(call, call.params.k)).scatter();
}

}  // namespace carillon
