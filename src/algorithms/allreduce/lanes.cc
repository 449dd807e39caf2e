// SPDX-License-Identifier: Apache-2.0
//
// allreduce.lanes: a piece for each rank (common/lanes.h). Within each node the pieces are reduced,
// each by the rank in whose lane it is; their owners get these partial results, reduce them, and
// give the result to the same ranks, from which all of their nodes have it.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020; here for any number of ranks on a node.
//
// 5 ranks on nodes 3, 2, pieces a b c d e; [01]a: piece a of x0 (op) x1, A: of all:
//            0           1           2        |  3            4
//   start    abcde       abcde       abcde       abcde        abcde
//   node     [012]ad     [012]b      [012]ce     [34]abd      [34]ce
//   lanes    A           B           C           D            E
//   lanes    AD          B           CE          ABD          CE
//   node     ABCDE       ABCDE       ABCDE       ABCDE        ABCDE
//
// Cost (N nodes of R ranks): 2 alpha + 2 n beta + n gamma within a node, and 2 alpha + 2 n/R beta
// + n/R gamma between nodes, in 2 (N-1) messages a rank.
// Restrictions: the operator must commute. Of short vectors a rank alone joins another node
// (common/joined.h).
#include "algorithms/common/lanes.h"

#include "algorithms/catalogue.h"
#include "algorithms/common/joined.h"

namespace carillon {

void emit_allreduce_lanes(const Call& team, Builder& b) {
  const Call call = with_alone_joined(team, team.shared.block_bytes());
  const Shared& shared = call.shared;
  Lanes lanes("allreduce.lanes", call, b, Blocks(shared.count, shared.element_bytes, shared.ranks),
              Lanes::Order::kOfLanes);
  const auto place = [&](Rank owner, Range part) { return b.output(lanes.piece(owner).sub(part)); };
  const auto own = [&](Range part) { return place(call.rank, part); };
  lanes.reduce_in_node();
  lanes.to_owners(own);
  lanes.from_owners(own, place);
  lanes.share_in_node();
}

}  // namespace carillon
