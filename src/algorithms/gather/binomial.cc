// SPDX-License-Identifier: Apache-2.0
//
// gather.binomial: up a binomial tree; a rank passes its subtree's blocks on as one run. Short
// runs are put together from the input and the children's slots without a copy.
//
// Source: the textbook binomial gather.
//
// 7 ranks, root 0, blocks a b c d e f g:
//            0         1      2      3      4      5      6
//   start    a         b      c      d      e      f      g
//   step 0   ab        .      cd     .      ef     .      g
//   step 1   abcd      .      .      .      efg    .      .
//   step 2   abcdefg   .      .      .      .      .      .
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

void emit_root(const Call& call, Builder& b, const Knomial& tree, const Vranks& vranks) {
  const Rank ranks = tree.ranks;
  const Blocks blocks = Blocks::per_rank(call);
  b.copy(b.output(blocks[call.rank]), b.input(Range{0, call.shared.block_bytes()}));
  for (const Rank child : tree.children(0)) {
    const Rank first = vranks.rank(child);
    const Rank end = first + tree.span(child);
    Pieces run;
    run.add(b.output(blocks.span(first, std::min(end, ranks))));
    if (end > ranks) run.add(b.output(blocks.span(0, end - ranks)));
    segments_around(b, run.length(), call.segment_bytes(), run.breaks(), [&](Range s) {
      const Message m = b.wait(first, s.length);
      b.copy(run.slice(s), b.slot(m, Range{0, s.length}));
    });
  }
}

}  // namespace

void emit_gather_binomial(const Call& call, Builder& b) {
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
  const std::int64_t total = block * tree.span(v);
  const bool short_run = total <= segment;  // one message: nothing to store
  const Range store = b.allocate_scratch(short_run ? 0 : total - block);
  Pieces run;
  run.add(b.input(Range{0, block}));
  for (const Rank child : tree.children(v)) {
    const Rank peer = vranks.rank(child);
    const std::int64_t bytes = block * tree.span(child);
    if (short_run) {
      run.add(b.slot(b.wait(peer, bytes), Range{0, bytes}));
      continue;
    }
    const Range part{store.offset + block * (child - v - 1), bytes};
    b.segments(bytes, segment, [&](Range s) {
      const Message m = b.wait(peer, s.length);
      b.copy(b.scratch(part.sub(s)), b.slot(m, Range{0, s.length}));
    });
  }
  if (!short_run) run.add(b.scratch(store));
  segments_around(b, total, segment, run.breaks(),
                  [&](Range s) { b.put(vranks.rank(tree.parent(v)), run.slice(s)); });
}

}  // namespace carillon
