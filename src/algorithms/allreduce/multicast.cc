// SPDX-License-Identifier: Apache-2.0
//
// allreduce.multicast: reduce within each node to its leader, reduce of the leaders to the first,
// which multicasts the result to all.
//
// Source: Mamidala, Liu, Panda, "Efficient barrier and allreduce on InfiniBand clusters using
// hardware multicast and adaptive algorithms", 2004.
//
// 5 ranks on nodes 3, 2 (01 stands for x0 (op) x1):
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     012     .       .        34      .
//   leaders  01234   .       .        .       .
//   all      01234   01234   01234    01234   01234
//
// Cost: that of reduce.hierarchical, then alpha + n beta, whatever the number of nodes.
// Restrictions: the team has multicast; where the operator does not commute, the ranks of each node
// must follow one another. Parameters: node (reduce in nodes, and bcast), leaders (reduce), and k
// and segment for them.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_allreduce_multicast(const Call& call, Builder& b) {
  const std::int64_t count = call.shared.count;
  const Levels levels("allreduce.multicast", call, b);
  const Buffer result = b.output({});
  if (levels.is_alone()) {
    levels.on_leaders(count, b.input({}), result);
  } else {
    levels.on_node(Algorithm::kBefore, count, b.input({}), result);
    levels.on_leaders(count, result, result);
  }
  levels.on_all(Algorithm::kAfter, 0, count, result, result);
}

}  // namespace carillon
