// SPDX-License-Identifier: Apache-2.0
//
// barrier.switch: signals to each node's leader, one reduction of nothing in the switches between
// the leaders, and a signal to all of each node.
//
// Source: Hu et al. 2013 (docs/switch-protocol.md).
//
// 5 ranks on nodes 3, 2 (who knows that which ranks have come):
//            0       1       2     |  3       4
//   start    0       1       2        3       4
//   node     012     .       .        34      .
//   switch   all     .       .        all     .
//   node     all     all     all      all     all
//
// Cost: 2 alpha within a node + 2 alpha between the nodes, whatever their number.
// Restrictions: none. Parameters: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/node.h"
#include "algorithms/common/others.h"

namespace carillon {

void emit_barrier_switch(const Call& call, Builder& b) {
  const std::vector<Rank> members = node_of(call, call.rank);
  const Rank leader = members.front();
  b.phase("node");
  if (call.rank != leader) {
    b.signal(leader);
  } else {
    for (const Rank member : members) {
      if (member != leader) b.wait(member, 0);
    }
    if (!call.limits.one_node()) {
      b.phase("switch");
      b.aggregate({}, {});
    }
  }
  if (members.size() == 1) return;
  b.phase("node");
  Call node = call;
  node.rank = place_in(members, call.rank);
  node.limits.nodes = nullptr;  // of the team; the Builder knows who can read what
  node = b.enter(node, members, b.input({}), b.output({}));
  if (call.rank == leader) {
    put_others(node, b, {});
  } else {
    wait_other(node, b, 0, 0);
  }
  b.leave();
}

}  // namespace carillon
