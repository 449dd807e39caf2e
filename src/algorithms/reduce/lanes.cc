// SPDX-License-Identifier: Apache-2.0
//
// reduce.lanes: a piece for each rank (common/lanes.h). Within each node the pieces are reduced,
// each by the rank in whose lane it is; their owners get these partial results, reduce them, and
// give the result to who is in the piece's lane on the root's node, from where the root has it.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020; here for any number of ranks on a node.
//
// 5 ranks on nodes 3, 2, root 1, pieces a b c d e; [01]a: piece a of x0 (op) x1, A: of all:
//            0           1           2        |  3            4
//   start    abcde       abcde       abcde       abcde        abcde
//   node     [012]ad     [012]b      [012]ce     [34]abd      [34]ce
//   lanes    A           B           C           D            E
//   lanes    AD          B           CE          .            .
//   node     .           ABCDE       .           .            .
//
// Cost (N nodes of R ranks): 2 alpha + 2 n beta + n gamma within a node, and 2 alpha + 2 n/R beta
// + n/R gamma between nodes, in up to 2 (N-1) messages a rank.
// Restrictions: the operator must commute. Of short vectors a rank alone joins another node
// (common/joined.h).
#include "algorithms/common/lanes.h"

#include "algorithms/catalogue.h"
#include "algorithms/common/joined.h"

namespace carillon {

void emit_reduce_lanes(const Call& team, Builder& b) {
  const Call call = with_alone_joined(team, team.shared.block_bytes());
  const Shared& shared = call.shared;
  Lanes lanes("reduce.lanes", call, b, Blocks(shared.count, shared.element_bytes, shared.ranks),
              Lanes::Order::kOfLanes);
  const std::int32_t node = lanes.node_of(shared.root);
  const bool is_root = call.rank == shared.root, is_near = node == lanes.levels().own();
  // Where the results of this rank's lanes stay, or of its own piece alone.
  const std::int64_t bytes = is_near ? lanes.lanes_bytes() : lanes.piece(call.rank).length;
  const Range results = b.allocate_scratch(is_root ? 0 : bytes);
  const auto place = [&](Rank owner, Range part) {
    if (is_root) return b.output(lanes.piece(owner).sub(part));
    const std::int64_t before = is_near ? lanes.start(owner) : 0;
    return b.scratch(results.sub({before + part.offset, part.length, part.stride}));
  };
  const auto own = [&](Range part) { return place(call.rank, part); };
  lanes.reduce_in_node();
  lanes.to_owners(own);
  lanes.from_owners(own, place, node);
  lanes.give_in_node(shared.root, results);
}

}  // namespace carillon
