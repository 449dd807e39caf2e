// SPDX-License-Identifier: Apache-2.0
//
// allreduce.degree_k: reduce to rank 0 up a tree in which k children of a node arrive at once,
// each in its own slot; then broadcast down the same tree.
//
// Source: Gupta, Balaji, Panda, Nieplocha, "Efficient collective operations using remote memory
// operations on VIA-based clusters", IPDPS 2003.
//
// 7 ranks, k = 3 (edges of a k-nomial tree of radix k + 1):
//   1 2 3 -> 0, 5 6 -> 4        0123 . . . 456 . .
//   4 -> 0                      0123456 at rank 0
//   0 -> 4                      0 and 4 have the result
//   0 -> 3 2 1, 4 -> 6 5        all have it
//
// Cost: 2 ceil(log_{k+1} P) (alpha + k n beta) + k ceil(log_{k+1} P) n gamma.
// Restrictions: none. Best for short vectors: long ones cross each level k times.
#include "algorithms/catalogue.h"
#include "algorithms/common/tree.h"

namespace carillon {

void emit_allreduce_degree_k(const Call& call, Builder& b) {
  const Knomial tree{call.shared.ranks, call.params.k + 1};
  const Vranks vranks{call.shared.ranks, 0};
  const auto output = [&](Range s) { return b.output(s); };
  b.phase("reduce");
  tree_reduce(call, b, tree, vranks, output, [](Range, const Buffer&) {});
  // Not overlapped with the reduction: messages up and down would share the few large slots, and
  // a rank whose slots all hold messages down could no longer take what comes up.
  b.phase("bcast");
  tree_bcast(call, b, tree, vranks, output);
}

}  // namespace carillon
