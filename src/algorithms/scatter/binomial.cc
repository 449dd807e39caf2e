// SPDX-License-Identifier: Apache-2.0
//
// scatter.binomial: down a binomial tree; a rank gets its subtree's blocks as one run and passes
// on the parts. Short runs are passed on straight from the slot they arrived in.
//
// Source: the textbook binomial scatter.
//
// 7 ranks, root 0, blocks a b c d e f g:
//            0         1      2      3      4      5      6
//   start    abcdefg   .      .      .      .      .      .
//   step 0   abcd      .      .      .      efg    .      .
//   step 1   ab        .      cd     .      ef     .      g
//   step 2   a         b      c      d      e      f      g
//
// Cost: ceil(log2 P) alpha + (P-1) n beta at the root, n: one block.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/knomial.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {
namespace {

// The largest subtree first: it has the longest way to go.
std::vector<Rank> children_of(const Knomial& tree, Rank v) {
  std::vector<Rank> children = tree.children(v);
  std::reverse(children.begin(), children.end());
  return children;
}

void emit_root(const Call& call, Builder& b, const Knomial& tree, const Vranks& vranks) {
  const Rank ranks = tree.ranks;
  const Blocks blocks = Blocks::per_rank(call);
  for (const Rank child : children_of(tree, 0)) {
    const Rank first = vranks.rank(child);
    const Rank end = first + tree.span(child);
    Pieces run;
    run.add(b.input(blocks.span(first, std::min(end, ranks))));
    if (end > ranks) run.add(b.input(blocks.span(0, end - ranks)));
    segments_around(b, run.length(), call.segment_bytes(), run.breaks(),
                    [&](Range s) { b.put(first, run.slice(s)); });
  }
  b.copy(b.output(Range{0, call.shared.block_bytes()}), b.input(blocks[call.rank]));
}

}  // namespace

void emit_scatter_binomial(const Call& call, Builder& b) {
  const Vranks vranks{call.shared.ranks, call.shared.root};
  const Knomial tree{call.shared.ranks, 2};
  const Rank v = vranks.vrank(call.rank);
  const std::int64_t block = call.shared.block_bytes();
  const std::int64_t segment = call.segment_bytes();
  if (block == 0) return;
  if (v == 0) {
    emit_root(call, b, tree, vranks);
    return;
  }
  const Rank parent = vranks.rank(tree.parent(v));
  const std::int64_t total = block * tree.span(v);
  const Range own{0, block};
  if (total <= segment) {
    const Message m = b.wait(parent, total);
    for (const Rank child : children_of(tree, v)) {
      b.put(vranks.rank(child), b.slot(m, {block * (child - v), block * tree.span(child)}));
    }
    b.copy(b.output(own), b.slot(m, own));
    return;
  }
  const Range store = b.allocate_scratch(total - block);
  Pieces run;
  run.add(b.output(own));
  run.add(b.scratch(store));
  segments_around(b, total, segment, run.breaks(), [&](Range s) {
    const Message m = b.wait(parent, s.length);
    b.copy(run.slice(s), b.slot(m, Range{0, s.length}));
  });
  for (const Rank child : children_of(tree, v)) {
    const Range part{store.offset + block * (child - v - 1), block * tree.span(child)};
    b.segments(part.length, segment,
               [&](Range s) { b.put(vranks.rank(child), b.scratch(part.sub(s))); });
  }
}

}  // namespace carillon
