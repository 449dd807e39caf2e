// SPDX-License-Identifier: Apache-2.0
//
// barrier.hierarchical: a barrier within each node, one of the nodes' leaders, and a signal of each
// to its node.
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
// Restrictions: none. Parameters: node, leaders.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"
#include "algorithms/common/others.h"

namespace carillon {

void emit_barrier_hierarchical(const Call& call, Builder& b) {
  const Levels levels("barrier.hierarchical", call, b);
  levels.on_node(Algorithm::kBefore, 0, b.input({}), b.output({}));
  if (levels.nodes() == 1) return;
  levels.on_leaders(0, b.input({}), b.output({}));
  if (levels.is_alone()) return;
  Call own = call;
  own.rank = levels.place();
  b.phase("node");
  own = b.enter(own, levels.members(levels.own()), b.input({}), b.output({}));
  if (levels.is_leader()) {
    put_others(own, b, {});
  } else {
    wait_other(own, b, 0, 0);
  }
  b.leave();
}

}  // namespace carillon
