// SPDX-License-Identifier: Apache-2.0
//
// reduce.degree_k: up a tree in which k children of a node arrive at once, each in its own slot.
// k = 1 is the binomial tree; more children make it flatter.
//
// Source: Gupta, Balaji, Panda, Nieplocha, IPDPS 2003 (the degree-k tree for reduction).
//
// 7 ranks, root 0, k = 3 (edges of a k-nomial tree of radix k + 1):
//   1 2 3 -> 0, 5 6 -> 4        0123 . . . 456 . .
//   4 -> 0                      0123456
//
// Cost: ceil(log_{k+1} P) (alpha + k n beta + k n gamma).
// Restrictions: none. Where the operator does not commute the tree is rooted at rank 0, which
// passes the result on to the root.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/tree.h"

namespace carillon {

void emit_reduce_degree_k(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Knomial tree{shared.ranks, call.params.k + 1};
  const Vranks vranks{shared.ranks, shared.commutative ? shared.root : 0};
  const bool is_top = vranks.vrank(call.rank) == 0;
  const bool passes_on = vranks.root != shared.root;
  const bool to_output = is_top && !passes_on;
  const bool has_children = !tree.children(vranks.vrank(call.rank)).empty();

  const std::int64_t room = std::min(call.segment_bytes(), shared.block_bytes());
  const Range scratch = b.allocate_scratch(to_output || !has_children ? 0 : room);
  const auto sum = [&](Range s) {
    return to_output ? b.output(s) : b.scratch({scratch.offset, s.length});
  };
  tree_reduce(call, b, tree, vranks, sum, [&](Range, const Buffer& result) {
    if (passes_on) b.put(shared.root, result);
  });
  if (!passes_on || call.rank != shared.root) return;
  b.strand();  // of its own: rank 0 must not wait for the root's part in the tree
  b.segments(shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    const Message m = b.wait(0, s.length);
    b.copy(b.output(s), b.slot(m, Range{0, s.length}));
  });
}

}  // namespace carillon
