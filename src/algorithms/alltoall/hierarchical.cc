// SPDX-License-Identifier: Apache-2.0
//
// alltoall.hierarchical: the blocks of a node's ranks are gathered at its leader, the leaders
// exchange all blocks from node to node as one, and each leader scatters what has come. One
// message per pair of nodes instead of one per pair of ranks.
//
// Source: Sistare, vandeVaart, Loh, "Optimization of MPI collectives on clusters of large-scale
// SMPs", 1999.
//
// 5 ranks on nodes 3, 2 (02: the block from rank 0 to rank 2; x: from any rank of the team):
//            0                  1      2    |  3              4
//   start    00 01 02 03 04     1x     2x      3x             4x
//   node     0x 1x 2x           .      .       3x 4x          .
//   leaders  x0 x1 x2           .      .       x3 x4          .
//   node     x0                 x1     x2      x3             x4
//
// Cost: by default 2 alpha + 2 R P n beta at the leader of a node of R ranks (n: one block),
// (N-1) alpha + R (P-R) n beta between N nodes, and two copies of R P n bytes.
// Restrictions: none. Parameters: node (gather and scatter), leaders (alltoall), and segment for
// them. For short blocks.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {
namespace {

// The two memories of a leader. `by_rank` holds, for each rank of its node, the blocks from or to
// all ranks of the team; `by_node`, for each node, the blocks from or to its ranks.
struct Store {
  const Levels& levels;
  Builder& b;
  std::int64_t block;
  Rank ranks;
  Range by_rank, by_node;

  [[nodiscard]] Buffer of_rank(Rank member, Rank peer) const {
    return b.scratch(by_rank.sub({block * (std::int64_t{member} * ranks + peer), block}));
  }
  // Block `index` of those exchanged with the node.
  [[nodiscard]] Buffer of_node(Range memory, std::int32_t node, std::int64_t index) const {
    const std::int64_t before = std::int64_t{levels.size(levels.own())} * levels.first(node);
    return b.scratch(memory.sub({block * (before + index), block}));
  }
};

// What the node's ranks send to the ranks of a node, sender by sender.
void pack(const Store& store) {
  const Levels& levels = store.levels;
  for (std::int32_t node = 0; node < levels.nodes(); ++node) {
    BufferList dst;
    BufferList src;
    std::int64_t index = 0;
    for (Rank member = 0; member < levels.size(levels.own()); ++member) {
      for (const Rank peer : levels.members(node)) {
        dst.add(store.of_node(store.by_node, node, index++));
        src.add(store.of_rank(member, peer));
      }
    }
    store.b.copy(dst, src);
  }
}

// What has come from a node, in the order in which that one packed it, in `arrived`, to a memory
// like by_rank in `sorted`.
void unpack(const Store& store, Range arrived) {
  const Levels& levels = store.levels;
  const Rank own = levels.size(levels.own());
  for (std::int32_t node = 0; node < levels.nodes(); ++node) {
    BufferList dst;
    BufferList src;
    for (Rank member = 0; member < own; ++member) {
      std::int64_t sender = 0;
      for (const Rank peer : levels.members(node)) {
        dst.add(store.of_rank(member, peer));
        src.add(store.of_node(arrived, node, sender++ * own + member));
      }
    }
    store.b.copy(dst, src);
  }
}

}  // namespace

void emit_alltoall_hierarchical(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Levels levels("alltoall.hierarchical", call, b);
  const Rank own = levels.size(levels.own());
  const std::int64_t for_rank = shared.count * shared.ranks;
  const std::int64_t bytes = levels.is_leader() ? shared.block_bytes() * shared.ranks * own : 0;
  const Range by_rank = b.allocate_scratch(bytes);
  const Range by_node = b.allocate_scratch(bytes);
  const Store gathered{levels, b, shared.block_bytes(), shared.ranks, by_rank, by_node};

  levels.on_node(Algorithm::kBefore, for_rank, b.input({}), b.scratch(by_rank));
  if (levels.is_leader()) pack(gathered);
  levels.on_leaders_for_all(shared.count, b.scratch(by_node), b.scratch(by_rank));
  // The other way round now: what has come is in by_rank, and is sorted into by_node.
  const Store sorted{levels, b, shared.block_bytes(), shared.ranks, by_node, by_rank};
  if (levels.is_leader()) unpack(sorted, by_rank);
  levels.on_node(Algorithm::kAfter, for_rank, b.scratch(by_node), b.output({}));
}

}  // namespace carillon
