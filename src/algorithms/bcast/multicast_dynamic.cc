// SPDX-License-Identifier: Apache-2.0
//
// bcast.multicast_dynamic: the root sends each segment once to all other nodes. On each of these
// one process at a time takes it from the network, for all: the one that comes first, or took the
// ones before. No rank waits for one that is late. The root's own node reads what the root writes.
//
// Source: Mamidala, Chai, Jin, Panda, "Efficient SMP-aware MPI-level broadcast over InfiniBand's
// hardware multicast", 2006: the dynamic attach policy.
//
// 7 ranks on nodes 3, 2, 2; root 1, a segment a; rank 3 is late:
//                0   1   2  |  3   4  |  5   6
//   start        .   a   .     .   .     .   .
//   root's node  a   a   a     .   .     .   .
//   nodes        a   a   a     .   a     a   a
//   later        a   a   a     a   a     a   a
//
// Cost: alpha + n beta between nodes, whatever their number, and one write that all read on each.
// Restrictions: the team has multicast.
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/node.h"
#include "algorithms/common/others.h"

namespace carillon {

void emit_bcast_multicast_dynamic(const Call& call, Builder& b) {
  const Rank root = call.shared.root;
  const std::int64_t bytes = call.shared.block_bytes();
  const std::int64_t segment = call.multicast_segment_bytes();
  if (!call.limits.share_node(call.rank, root)) {
    b.segments(bytes, segment, [&](Range s) { b.receive(Channel::kNodes, root, b.output(s)); });
    return;
  }
  const std::vector<Rank> members = node_of(call, root);
  Call node = call;
  node.rank = place_in(members, call.rank);
  node.shared.root = place_in(members, root);
  node.limits.nodes = nullptr;  // of the team; the Builder knows who can read what
  node = b.enter(node, members, b.input({}), b.output({}));
  b.segments(bytes, segment, [&](Range s) {
    if (call.rank == root) {
      b.multicast(Channel::kNodes, b.input(s));
      if (members.size() > 1) put_others(node, b, b.input(s));
    } else {
      const Message m = wait_other(node, b, node.shared.root, s.length);
      b.copy(b.output(s), b.slot(m, Range{0, s.length}));
    }
  });
  b.leave();
}

}  // namespace carillon
