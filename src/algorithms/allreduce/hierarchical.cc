// SPDX-License-Identifier: Apache-2.0
//
// allreduce.hierarchical: reduce within each node to its leader, allreduce of the leaders, bcast
// within each node. Only the leaders use the network.
//
// Source: Karonis et al. 2000 (see bcast.hierarchical); Bienz, Olson, Gropp, "Node-aware
// improvements to allreduce", 2019, discusses it.
//
// 5 ranks on nodes 3, 2 (01 stands for x0 (op) x1):
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     012     .       .        34      .
//   leaders  01234   .       .        01234   .
//   node     01234   01234   01234    01234   01234
//
// Cost: by default n gamma in a node of R ranks, ceil(log2 N) (alpha + n beta + n gamma)
// between N nodes, and one write that all of a node read.
// Restrictions: where the operator does not commute, the ranks of each node must follow one
// another. Parameters: node (reduce and bcast), leaders (allreduce), and k and segment for them.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_allreduce_hierarchical(const Call& call, Builder& b) {
  const std::int64_t count = call.shared.count;
  const Levels levels("allreduce.hierarchical", call, b);
  const Buffer result = b.output({});
  if (levels.is_alone()) {
    levels.on_leaders(count, b.input({}), result);
    return;
  }
  levels.on_node(Algorithm::kBefore, count, b.input({}), result);
  levels.on_leaders(count, result, result);
  levels.on_node(Algorithm::kAfter, count, result, result);
}

}  // namespace carillon
