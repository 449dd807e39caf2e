// SPDX-License-Identifier: Apache-2.0
//
// bcast.multicast_leader: only the first rank of each node, its leader, takes what the network
// copies, and passes it on in the node's memory, segment by segment. A root that leads no node
// writes each segment once for its node, whose leader multicasts it from there. On a node of
// several NUMA domains a segment goes on as by bcast.domains.
//
// Source: Mamidala, Chai, Jin, Panda, "Efficient SMP-aware MPI-level broadcast over InfiniBand's
// hardware multicast", 2006: the leader-based design.
//
// 7 ranks on nodes 3, 2, 2; root 1, a segment a; leaders 0, 3, 5:
//                0   1   2  |  3   4  |  5   6
//   start        .   a   .     .   .     .   .
//   root's node  a   a   a     .   .     .   .
//   multicast    a   a   a     a   .     a   .
//   nodes        a   a   a     a   a     a   a
//
// Cost: alpha + n beta between nodes, whatever their number, and one write that all read on each:
// two for the first segment if the root leads no node. With domains, that of bcast.domains.
// Restrictions: the team has multicast.
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/domains.h"
#include "algorithms/common/node.h"

namespace carillon {

void emit_bcast_multicast_leader(const Call& call, Builder& b) {
  const Rank root = call.shared.root;
  const bool is_leader = call.limits.is_leader(call.rank);
  const Rank root_leader = node_of(call, root).front();
  const std::vector<Rank> members = node_of(call, call.rank);
  const bool with_root = call.limits.share_node(call.rank, root);
  // Who writes for this node.
  const Rank writer = place_in(members, with_root ? root : members.front());
  Call node = call;
  node.rank = place_in(members, call.rank);
  node.shared.root = writer;
  node.limits.nodes = nullptr;  // of the team; the Builder knows who can read what
  node = b.enter(node, members, b.input({}), b.output({}));
  const Domains domains(node, b, writer, call.shared.block_bytes());
  b.segments(call.shared.block_bytes(), call.multicast_segment_bytes(), [&](Range s) {
    if (is_leader && !with_root) b.receive(Channel::kLeaders, root_leader, b.output(s));
    if (node.rank == writer) {
      const Buffer data = with_root ? b.input(s) : b.output(s);
      if (is_leader && with_root) b.multicast(Channel::kLeaders, data);
      domains.put(data);
      return;
    }
    const Message m = domains.wait(s.length);
    const Buffer arrived = b.slot(m, Range{0, s.length});
    if (is_leader && with_root) b.multicast(Channel::kLeaders, arrived);
    b.copy(b.output(s), arrived);
    domains.pass_on(b.output(s));
  });
  b.leave();
}

}  // namespace carillon
