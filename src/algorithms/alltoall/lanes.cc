// SPDX-License-Identifier: Apache-2.0
//
// alltoall.lanes: on each node one rank stands in for each rank elsewhere (common/lanes.h): within
// a node the ranks give it their blocks for that one, and it gives them on as one message. For
// several ranks of a node of twice the ranks and more it gives them to one, which passes them on.
// So a rank has one message or two for each other node, in place of one for each rank.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020, for nodes of as many ranks.
//
// 5 ranks on nodes 4, 1 (02: the block from rank 0 to rank 2; x: from the ranks of the node):
//            0                1                2                3              |  4
//   start    00 01 02 03 04   10 11 12 13 14   20 21 22 23 24   30 31 32 33 34    40 41 42 43 44
//   node     x0               x1               x2 x4            x3                40 41 42 43 44
//   lanes    x0               x1 40 41 42 43   x2               x3                44 04 14 24 34
//   pass     x0 40            x1 41            x2 42            x3 43             44 04 14 24 34
//
// Cost (N nodes of R ranks, n: one block): (R-1) (alpha + N n beta) within a node and
// (N-1) (alpha + R n beta) between nodes, P n bytes copied on the way.
// Restrictions: none. In place, messages that may be sent, not put, have the input copied before.
#include "algorithms/catalogue.h"
#include "algorithms/common/lane_exchange.h"

namespace carillon {

void emit_alltoall_lanes(const Call& call, Builder& b) {
  LaneExchange exchange(call, b);
  // What is sent stays where it is until it has been received; and two puts have to be under way.
  const bool put =
      is_put(call, exchange.most_bytes()) && !call.params.two_sided && call.limits.large_slots >= 2;
  const bool staged = call.local.in_place && !put;
  if (staged) b.enter_staged();
  exchange.within_node(!staged);
  exchange.between_nodes();
  exchange.pass_on();
  if (staged) b.leave();
}

}  // namespace carillon
