// SPDX-License-Identifier: Apache-2.0
//
// allgather.lanes: each rank puts its block to one rank of every other node, which stands in for it
// there (common/lanes.h) and gives it to its node, with what else it has.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020; here for any number of ranks on a node.
//
// 5 ranks on nodes 3, 2, blocks a b c d e:
//            0        1        2     |  3        4
//   start    a        b        c        d        e
//   lanes    ad       b        ce       abd      ce
//   node     abcde    abcde    abcde    abcde    abcde
//
// Cost (N nodes of R ranks, n: one block): alpha + (N-1) n beta between nodes, in N-1 messages a
// rank, and alpha + P n beta within a node.
// Restrictions: none.
#include "algorithms/common/lanes.h"

#include "algorithms/catalogue.h"

namespace carillon {

void emit_allgather_lanes(const Call& call, Builder& b) {
  Lanes lanes("allgather.lanes", call, b, Blocks::per_rank(call), Lanes::Order::kOfRanks);
  const Range own = lanes.piece(call.rank);
  b.copy(b.output(own), b.input({0, own.length}));
  lanes.from_owners([&](Range part) { return b.output(own.sub(part)); },
                    [&](Rank owner, Range part) { return b.output(lanes.piece(owner).sub(part)); });
  lanes.share_in_node();
}

}  // namespace carillon
