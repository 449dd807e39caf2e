// SPDX-License-Identifier: Apache-2.0
//
// barrier.hierarchical: a barrier within each node, one of the nodes' leaders, and again one
// within each node, which nobody leaves before its leader has come.
//
// Source: Graham, Shipman, "MPI support for multi-core architectures: optimized shared memory
// collectives", 2008.
//
// 5 ranks on nodes 3, 2; each column lists whose arrival a rank knows of:
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     012     012     012      34      34
//   leaders  all     012     012      all     34
//   node     all     all     all      all     all
//
// Cost: 2 alpha within a node + ceil(log2 N) alpha between N nodes, by default.
// Restrictions: none. Parameters: node (twice), leaders.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_barrier_hierarchical(const Call& call, Builder& b) {
  const Levels levels("barrier.hierarchical", call, b);
  levels.on_node(Algorithm::kBefore, 0, b.input({}), b.output({}));
  if (levels.nodes() == 1) return;
  levels.on_leaders(0, b.input({}), b.output({}));
  levels.on_node(Algorithm::kAfter, 0, b.input({}), b.output({}));
}

}  // namespace carillon
