// SPDX-License-Identifier: Apache-2.0
//
// reduce.switch: reduce within each node to its leader, one reduction of the leaders in the
// switches between them, whose result the leader of the root's node takes, and from there to the
// root.
//
// Source: Hu et al. 2013 (docs/switch-protocol.md).
//
// 5 ranks on nodes 3, 2; root 1 (01 stands for x0 (op) x1):
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     012     .       .        34      .
//   switch   01234   .       .        .       .
//   root     .       01234   .        .       .
//
// Cost: that of a node's reduce, 2 alpha + n beta between the nodes, whatever their number, and
// where the root leads no node alpha + n beta within it.
// Restrictions: the operator and the type are among those of switches, which commute.
// Parameters: segment, within the nodes.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_reduce_switch(const Call& call, Builder& b) {
  const std::int64_t bytes = call.shared.block_bytes();
  const Rank root = call.shared.root;
  const Levels levels("reduce.switch", call, b);
  const std::span<const Rank> node = levels.members(levels.own());
  const bool has_root = std::find(node.begin(), node.end(), root) != node.end();
  Buffer operand = b.input({0, bytes}), result = b.output({0, bytes});
  if (levels.is_leader() && call.rank != root) result = Builder::scratch(b.allocate_scratch(bytes));
  if (!levels.is_alone()) {
    const Buffer sum = levels.is_leader() ? result : b.output({});
    levels.on_node(Algorithm::kBefore, call.shared.count, b.input({}), sum);
    operand = result;
  }
  if (levels.nodes() > 1 && levels.is_leader() && bytes > 0) {
    b.phase("switch");
    if (has_root) {
      b.aggregate(result, operand);
    } else {
      b.aggregate({}, operand);
    }
  }
  if (!has_root || node.front() == root) return;
  b.phase("root");
  b.segments(bytes, call.segment_bytes(), [&](Range s) {
    if (levels.is_leader()) {
      Buffer part = result;
      part.range = part.range.sub(s);
      b.put(root, part);
    }
    if (call.rank != root) return;
    const Message m = b.wait(node.front(), s.length);
    b.copy(b.output(s), b.slot(m, Range{0, s.length}));
  });
}

}  // namespace carillon
