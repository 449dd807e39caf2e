// SPDX-License-Identifier: Apache-2.0
//
// bcast.hierarchical: from the root to one rank of every other node, then within each node. The
// root leads its own node, so that nothing is passed on there first.
//
// Source: Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan, "Exploiting hierarchy in parallel
// computer networks to optimize collective operation performance", 2000.
//
// 5 ranks on nodes 3, 2; root 1:
//            0       1       2     |  3       4
//   start    .       a       .        .       .
//   leaders  .       a       .        a       .
//   node     a       a       a        a       a
//
// Cost: that of the leaders' bcast among N nodes, then that of a node's; by default
// (k-1) ceil(log_k N) (alpha + n beta) between nodes, then one write that all read.
// Restrictions: none. Parameters: leaders, node, and k and segment for them.
#include "algorithms/catalogue.h"
#include "algorithms/common/levels.h"

namespace carillon {

void emit_bcast_hierarchical(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Levels levels("bcast.hierarchical", call, b, shared.root);
  const Buffer whole = call.rank == shared.root ? b.input({}) : b.output({});
  levels.on_leaders(shared.count, whole, whole);
  levels.on_node(Algorithm::kAfter, shared.count, whole, whole);
}

}  // namespace carillon
