// SPDX-License-Identifier: Apache-2.0
//
// The first half of van de Geijn's broadcast: the root's vector goes down a k-nomial tree, each
// child getting the blocks of its subtree, and lands in the output where it stands in the vector.
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/common/blocks.h"
#include "algorithms/common/knomial.h"
#include "algorithms/common/vrank.h"
#include "schedule/builder.h"

namespace carillon {

/// Block v - `first` is vrank v's, who owns one if it is not less than `first`; vrank 0 has the
/// input. Largest subtrees are served first.
inline void scatter_vector(const Call& call, Builder& b, const Knomial& tree, const Vranks& vranks,
                           const Blocks& blocks, Rank first) {
  const Rank v = vranks.vrank(call.rank);
  const std::int64_t segment = call.segment_bytes();
  const auto subtree = [&](Rank vrank) {
    return blocks.span(vrank - first, vrank - first + tree.span(vrank));
  };
  if (v != 0) {
    const Range mine = subtree(v);
    b.segments(mine.length, segment, [&](Range s) {
      const Message m = b.wait(vranks.rank(tree.parent(v)), s.length);
      b.copy(b.output(mine.sub(s)), b.slot(m, Range{0, s.length}));
    });
  }
  std::vector<Rank> children = tree.children(v);
  std::reverse(children.begin(), children.end());
  for (const Rank child : children) {
    const Range theirs = subtree(child);
    b.segments(theirs.length, segment, [&](Range s) {
      const Range part = theirs.sub(s);
      b.put(vranks.rank(child), v == 0 ? b.input(part) : b.output(part));
    });
  }
}

}  // namespace carillon
