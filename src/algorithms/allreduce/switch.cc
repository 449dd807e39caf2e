// SPDX-License-Identifier: Apache-2.0
//
// allreduce.switch: reduce within each node to its leader, one reduction of the leaders in the
// switches between them, and bcast of the result within each node.
//
// Source: Hu et al. 2013 (docs/switch-protocol.md).
//
// 5 ranks on nodes 3, 2 (01 stands for x0 (op) x1):
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     012     .       .        34      .
//   switch   01234   .       .        01234   .
//   node     01234   01234   01234    01234   01234
//
// Cost: that of a node's reduce and bcast, and 2 alpha + n beta between the nodes, whatever their
// number: each sends its operand once and receives the result once, at the same time.
// Restrictions: the operator and the type are among those of switches, which commute.
// Parameters: segment, within the nodes.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_allreduce_switch(const Call& call, Builder& b) {
  const std::int64_t count = call.shared.count;
  const Levels levels("allreduce.switch", call, b);
  const Buffer result = b.output({0, call.shared.block_bytes()});
  Buffer operand = b.input({0, call.shared.block_bytes()});
  if (!levels.is_alone()) {
    levels.on_node(Algorithm::kBefore, count, b.input({}), b.output({}));
    operand = result;
  }
  if (levels.nodes() > 1 && levels.is_leader() && count > 0) {
    b.phase("switch");
    b.aggregate(result, operand);
  }
  if (!levels.is_alone()) levels.on_node(Algorithm::kAfter, count, b.output({}), b.output({}));
}

}  // namespace carillon
