// SPDX-License-Identifier: Apache-2.0
//
// allgather.hierarchical: gather within each node to its leader, allgather of the leaders, whose
// blocks are as long as their nodes are large, bcast of everything within each node. Where the
// ranks of a node do not follow one another, the leaders put the blocks in order.
//
// Source: Traff, "Efficient allgather for regular SMP-clusters", 2006.
//
// 5 ranks on nodes 3, 2, blocks a b c d e:
//            0       1       2     |  3       4
//   start    a       b       c        d       e
//   node     abc     .       .        de      .
//   leaders  abcde   .       .        abcde   .
//   node     abcde   abcde   abcde    abcde   abcde
//
// Cost: by default alpha + R n beta in a node of R ranks (n: one block), ceil(log2 N) alpha +
// (P-R) n beta between N nodes, and one write of P n bytes that all of a node read.
// Restrictions: none. Parameters: node (gather and bcast), leaders (allgather), and k and segment
// for them.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"
#include "algorithms/common/node_order.h"

namespace carillon {

void emit_allgather_hierarchical(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t block = shared.block_bytes();
  const Levels levels("allgather.hierarchical", call, b);
  const NodeOrder all(call, b, levels);
  const Buffer own = all({block * levels.first(levels.own())});
  if (!levels.is_alone()) levels.on_node(Algorithm::kBefore, shared.count, b.input({}), own);
  levels.on_leaders_for_all(shared.count, levels.is_alone() ? b.input({}) : own, all({}));
  all.finish();
}

}  // namespace carillon
