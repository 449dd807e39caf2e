// SPDX-License-Identifier: Apache-2.0
//
// reduce.circulant: a reduce-scatter over distances that halve around the ring
// (common/circulant.h), then a gather of the reduced blocks up a k-nomial tree.
//
// Source: Bernaschi, Iannello, Lauria, "Efficient implementation of reduce-scatter in MPI", 2003;
// J. L. Traff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
//
// 3 ranks, root 1, blocks a b c; [01]ab: blocks a b of x0 (op) x1:
//            0            1            2
//   start    [0]abc       [1]abc       [2]abc
//   step 0   [01]a [0]b   [12]b [1]c   [20]c [2]a
//   step 1   [012]a       [012]b       [012]c
//   step 2   .            abc          .
//
// Cost: (ceil(log2 P) + ceil(log_k P)) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma.
// Restrictions: the operator must commute.
#include "algorithms/common/circulant.h"

#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/knomial.h"

namespace carillon {

void emit_reduce_circulant(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t segment = call.segment_bytes();
  const bool is_root = call.rank == shared.root;
  const Range scratch = b.allocate_scratch(is_root ? 0 : shared.block_bytes());
  const auto sum = [&](Range range) {
    return is_root ? b.output(range) : b.scratch(scratch.sub(range));
  };
  const Blocks blocks(shared.count, shared.element_bytes, shared.ranks);
  Circulant circulant(call, b, blocks, sum);
  b.phase("reduce_scatter");
  circulant.reduce_scatter(sum);

  b.phase("gather");
  const Vranks vranks{shared.ranks, shared.root};
  const Knomial tree{shared.ranks, call.params.k};
  const Rank v = vranks.vrank(call.rank);
  const auto run = [&](Rank first) {  // the blocks of the subtree of that vrank, around the team
    const Rank begin = vranks.rank(first), end = begin + tree.span(first);
    Pieces pieces;
    pieces.add(sum(blocks.span(begin, std::min(end, shared.ranks))));
    if (end > shared.ranks) pieces.add(sum(blocks.span(0, end - shared.ranks)));
    return pieces;
  };
  for (const Rank child : tree.children(v)) {
    const Pieces in = run(child);
    segments_around(b, in.length(), segment, in.breaks(), [&](Range s) {
      const Message m = b.wait(vranks.rank(child), s.length);
      b.copy(in.slice(s), b.slot(m, Range{0, s.length}));
    });
  }
  if (is_root) return;
  const Pieces out = run(v);
  segments_around(b, out.length(), segment, out.breaks(),
                  [&](Range s) { b.put(vranks.rank(tree.parent(v)), out.slice(s)); });
}

}  // namespace carillon
