// SPDX-License-Identifier: Apache-2.0
//
// reduce.hierarchical: within each node to one rank, then from those to the root, which leads its
// own node.
//
// Source: Karonis et al. 2000 (see bcast.hierarchical).
//
// 5 ranks on nodes 3, 2; root 1 (01 stands for x0 (op) x1):
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     .       012     .        34      .
//   leaders  .       01234   .        .       .
//
// Cost: that of a node's reduce, then that of the leaders' among N nodes; by default
// n gamma in a node of R ranks, then ceil(log_{k+1} N) (alpha + k n beta + k n gamma).
// Restrictions: where the operator does not commute, the ranks of each node must follow one
// another. Parameters: node, leaders, and k and segment for them.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_reduce_hierarchical(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Levels levels("reduce.hierarchical", call, b, shared.root);
  Buffer part = b.input({});  // what this node has reduced
  if (!levels.is_alone()) {
    if (call.rank == shared.root) {
      part = b.output({});
    } else if (levels.is_leader()) {
      part = b.scratch(b.allocate_scratch(shared.block_bytes()));
    }
    levels.on_node(Algorithm::kBefore, shared.count, b.input({}), part);
  }
  levels.on_leaders(shared.count, part, b.output({}));
}

}  // namespace carillon
