// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.lanes: within each node the ranks reduce a piece of all blocks each, then
// those in the same place of their nodes (a lane) reduce their piece over the nodes, and what each
// of them then has goes to the rank whose block it is. Between nodes go N blocks a rank, not P.
//
// Source: J. L. Traff, S. Hunold, "Decomposing MPI collectives for exploiting multi-lane
// communication", IEEE CLUSTER 2020; here with pieces of blocks that follow one another, so that
// none is copied into another order before.
//
// 4 ranks on nodes 2, 2, blocks a b c d; [01]a: block a of x0 (op) x1:
//            0            1         |  2            3
//   start    [0]abcd      [1]abcd      [2]abcd      [3]abcd
//   node     [01]ab       [01]cd       [23]ab       [23]cd
//   lanes    [0123]a      [0123]c      [0123]b      [0123]d
//   home     a            b            c            d
//
// Cost (N nodes of R ranks, n: one block): by default alpha + (R-1) N n (beta + gamma) in the node,
// ceil(log2 N) alpha + (N-1) n (beta + gamma) between nodes, and alpha + n beta.
// Restrictions: the operator must commute. Where nodes have different numbers of ranks, each rank
// reduces over its node the blocks in whose lanes it is (common/lanes.h), and these partial results
// go straight to the ranks whose blocks they are: 2 alpha, N-1 messages a rank. Of short vectors a
// rank alone joins another node. Parameters: node,
// leaders (of the lanes), and segment for them.
#include "algorithms/common/lanes.h"

#include "algorithms/catalogue.h"
#include "algorithms/common/joined.h"
#include "algorithms/common/levels.h"

namespace carillon {
namespace {

// Each block's partial results go straight to its rank, one from each node.
void reduce_scatter_on_uneven(const Call& team, Builder& b) {
  const Call call = with_alone_joined(team, team.shared.block_bytes() * team.shared.ranks);
  Lanes lanes("reduce_scatter_block.lanes", call, b, Blocks::per_rank(call),
              Lanes::Order::kOfRanks);
  lanes.reduce_in_node();
  lanes.to_owners([&](Range part) { return b.output(part); });
}

}  // namespace

void emit_reduce_scatter_block_lanes(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Levels levels("reduce_scatter_block.lanes", call, b);
  if (!levels.are_even()) return reduce_scatter_on_uneven(call, b);
  if (levels.is_alone()) {
    levels.on_all(Algorithm::kLeaders, 0, shared.count, b.input({}), b.output({}));
    return;
  }
  const std::int32_t nodes = levels.nodes();
  if (nodes == 1) {
    levels.on_node(Algorithm::kBefore, shared.count, b.input({}), b.output({}));
    return;
  }
  const std::int64_t block = shared.block_bytes();
  const Rank block_here = levels.place() * nodes + levels.own();  // after the lanes
  const Rank to = block_here;
  const Rank from = levels.members(call.rank % nodes)[static_cast<std::size_t>(call.rank / nodes)];
  const Range piece = b.allocate_scratch(block * nodes);
  const Range sum = b.allocate_scratch(to == call.rank ? 0 : block);
  const Buffer reduced = to == call.rank ? b.output({}) : b.scratch(sum);

  levels.on_node(Algorithm::kBefore, shared.count * nodes, b.input({}), b.scratch(piece));
  levels.on_lane(shared.count, b.scratch(piece), reduced);
  if (to == call.rank) return;
  b.phase("home");
  b.segments(block, call.segment_bytes(), [&](Range s) {
    b.put(to, b.scratch(sum.sub(s)));
    const Message m = b.wait(from, s.length);
    b.copy(b.output(s), b.slot(m, Range{0, s.length}));
  });
}

}  // namespace carillon
