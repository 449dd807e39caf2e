// SPDX-License-Identifier: Apache-2.0
//
// barrier.multicast: each rank signals its node's leader, the leaders signal up a tree in which k
// children of a node arrive at once, and the first of them tells all others by one multicast of no
// bytes, which each passes on in its node's memory.
//
// Source: Mamidala, Liu, Panda, "Efficient barrier and allreduce on InfiniBand clusters using
// hardware multicast and adaptive algorithms", 2004.
//
// 5 ranks on nodes 3, 2; each column lists whose arrival a rank knows of:
//               0       1       2     |  3       4
//   start       0       1       2        3       4
//   node        012     1       2        34      4
//   tree        all     1       2        34      4
//   multicast   all     1       2        all     4
//   node        all     all     all      all     all
//
// Cost: 2 alpha within a node + (ceil(log_{k+1} N) + 1) alpha between N nodes, on which go N - 1
// signals and one packet.
// Restrictions: the team has multicast.
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/knomial.h"
#include "algorithms/common/node.h"
#include "algorithms/common/others.h"

namespace carillon {
namespace {

// What the leaders do: the first leaves when all have come, the others when it has said so.
void meet_leaders(const Call& call, Builder& b) {
  if (call.limits.one_node()) return;
  const Nodes& nodes = *call.limits.nodes;
  const Knomial tree{nodes.count(), call.params.k + 1};
  const std::int32_t own = nodes.node_of(call.rank);
  const auto leader = [&](Rank node) { return nodes.members(node).front(); };
  b.phase("leaders");
  for (const Rank child : tree.children(own)) b.wait(leader(child), 0);
  if (own == 0) {
    b.multicast(Channel::kLeaders, {});
  } else {
    b.signal(leader(tree.parent(own)));
    b.receive(Channel::kLeaders, leader(0), {});
  }
}

}  // namespace

void emit_barrier_multicast(const Call& call, Builder& b) {
  const std::vector<Rank> members = node_of(call, call.rank);
  const Rank leader = members.front();
  b.phase("node");
  if (call.rank != leader) {
    b.signal(leader);
  } else {
    for (const Rank member : members) {
      if (member != leader) b.wait(member, 0);
    }
    meet_leaders(call, b);
  }
  if (members.size() == 1) return;
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
