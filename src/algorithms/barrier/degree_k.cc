// SPDX-License-Identifier: Apache-2.0
//
// barrier.degree_k: signals go up a tree in which k children of a node arrive at once, and down the
// same tree when all have come. 2 (P - 1) messages: the fewest there can be.
//
// Source: Yew, Tzeng, Lawrie, "Distributing hot-spot addressing in large-scale multiprocessors",
// 1987 (combining trees); the tree is that of Gupta et al., IPDPS 2003.
//
// 7 ranks, k = 3 (edges of a k-nomial tree of radix k + 1); each line lists who knows of all below:
//   1 2 3 -> 0, 5 6 -> 4        0 has 0123, 4 has 456
//   4 -> 0                      0 has all
//   0 -> 4                      0 and 4 know that all have come
//   0 -> 3 2 1, 4 -> 6 5        all know
//
// Cost: 2 ceil(log_{k+1} P) alpha; k messages at a node per level.
// Restrictions: none. Dissemination has half the steps and log2 P / 2 times the messages: it is
// better where each rank has a core and a link of its own.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/knomial.h"

namespace carillon {

void emit_barrier_degree_k(const Call& call, Builder& b) {
  const Knomial tree{call.shared.ranks, call.params.k + 1};
  const std::vector<Rank> children = tree.children(call.rank);
  const Rank parent = tree.parent(call.rank);
  for (const Rank child : children) b.wait(child, 0);
  if (parent >= 0) {
    b.signal(parent);
    b.wait(parent, 0);
  }
  // The largest subtree first.
  std::for_each(children.rbegin(), children.rend(), [&](Rank child) { b.signal(child); });
}

}  // namespace carillon
