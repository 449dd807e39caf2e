// SPDX-License-Identifier: Apache-2.0
//
// bcast.binomial: down a binomial tree, segment by segment; each rank forwards a segment from the
// slot it arrived in.
//
// Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
// MPICH", 2005.
//
// 7 ranks, root 0:              who has the data
//   0 -> 4                      0       4
//   0 -> 2, 4 -> 6              0   2   4   6
//   0 -> 1, 2 -> 3, 4 -> 5      0 1 2 3 4 5 6
//
// Cost: ceil(log2 P) (alpha + s beta) + (n/s - 1) ceil(log2 P) s beta at the root, s the segment.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree.h"

namespace carillon {

void emit_bcast_binomial(const Call& call, Builder& b) {
  const Vranks vranks{call.shared.ranks, call.shared.root};
  const Knomial tree{call.shared.ranks, 2};
  tree_bcast(call, b, tree, vranks, [&](Range s) { return b.input(s); });
}

}  // namespace carillon
