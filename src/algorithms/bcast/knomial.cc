// SPDX-License-Identifier: Apache-2.0
//
// bcast.knomial: down a k-nomial tree of radix k, segment by segment. A larger k makes the tree
// flatter and the root busier.
//
// Source: the textbook k-nomial tree.
//
// 7 ranks, root 0, k = 4:       who has the data
//   0 -> 4                      0       4
//   0 -> 3 2 1, 4 -> 6 5        0 1 2 3 4 5 6
//
// Cost: ceil(log_k P) alpha + (k-1) ceil(log_k P) s beta per segment of s bytes at the root.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree.h"

namespace carillon {

void emit_bcast_knomial(const Call& call, Builder& b) {
  const Vranks vranks{call.shared.ranks, call.shared.root};
  const Knomial tree{call.shared.ranks, call.params.k};
  tree_bcast(call, b, tree, vranks, [&](Range s) { return b.input(s); });
}

}  // namespace carillon
