// SPDX-License-Identifier: Apache-2.0
//
// The two halves of every tree algorithm, pipelined by segments: data up a tree while it is
// reduced, and down a tree. Messages only ever go one way, so that no flow control can close a
// circle.
#pragma once

#include <algorithm>

#include "algorithms/common/knomial.h"
#include "algorithms/common/vrank.h"
#include "schedule/builder.h"

namespace carillon {

/// The vector of every rank, reduced, arrives at vrank 0. `sum(segment)` is where a rank gathers
/// its subtree's part; at vrank 0 `done(segment, buffer)` is called with the result.
template <typename Sum, typename Done>
void tree_reduce(const Call& call, Builder& b, const Knomial& tree, const Vranks& vranks, Sum sum,
                 Done done) {
  const Rank v = vranks.vrank(call.rank);
  const std::vector<Rank> children = tree.children(v);
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    Buffer part = b.input(s);
    for (const Rank child : children) {
      const Message m = b.wait(vranks.rank(child), s.length);
      b.reduce(sum(s), part, b.slot(m, Range{0, s.length}));
      part = sum(s);
    }
    if (v == 0) {
      done(s, part);
    } else {
      b.put(vranks.rank(tree.parent(v)), part);
    }
  });
}

/// The vector at vrank 0 (`source(segment)`) arrives in the output of all others. Largest subtree
/// first: it has the longest way to go.
template <typename Source>
void tree_bcast(const Call& call, Builder& b, const Knomial& tree, const Vranks& vranks,
                Source source) {
  const Rank v = vranks.vrank(call.rank);
  std::vector<Rank> children = tree.children(v);
  std::reverse(children.begin(), children.end());
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    if (v == 0) {
      for (const Rank child : children) b.put(vranks.rank(child), source(s));
      return;
    }
    const Message m = b.wait(vranks.rank(tree.parent(v)), s.length);
    const Buffer arrived = b.slot(m, Range{0, s.length});
    for (const Rank child : children) b.put(vranks.rank(child), arrived);
    b.copy(b.output(s), arrived);
  });
}

}  // namespace carillon
