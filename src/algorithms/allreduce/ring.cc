// SPDX-License-Identifier: Apache-2.0
//
// allreduce.ring: the partial result of each block travels once around the ring, growing by one
// rank per step; then the reduced blocks travel around it.
//
// Source: the textbook ring.
//
// 5 ranks, block b of 5 blocks a b c d e ([34]b: block b of x3 (op) x4), reduce_scatter:
//            0          1          2          3          4
//   step 0   .          .          .          [23]b      .
//   step 1   .          .          .          .          [234]b
//   step 2   [2340]b    .          .          .          .
//   step 3   .          [23401]b   .          .          .
// and the four other blocks likewise, one rank apart. Then allgather:
//   step 4   .          b          b          .          .
//   step 7   b          b          b          b          b
//
// Cost: 2 (P-1) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma.
// Restrictions: the operator must commute.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_allreduce_ring(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Rank rank = call.rank;
  const Rank left = ring_neighbours(rank, ranks).left;
  const Rank right = ring_neighbours(rank, ranks).right;
  const Blocks blocks(call.shared.count, call.shared.element_bytes, ranks);

  b.phase("reduce_scatter");
  for (const int step : b.steps(ranks - 1)) {
    const Range out = blocks[wrap(rank - step - 1, ranks)];
    const Range in = blocks[wrap(rank - step - 2, ranks)];
    exchange(
        b, out.length, in.length, call.segment_bytes(),
        [&](Range s) { b.put(right, step == 0 ? b.input(out.sub(s)) : b.output(out.sub(s))); },
        [&](Range s) {
          const Message m = b.wait(left, s.length);
          b.reduce(b.output(in.sub(s)), b.slot(m, Range{0, s.length}), b.input(in.sub(s)));
        });
  }
  b.phase("allgather");
  for (const int step : b.steps(ranks - 1)) {
    const Range out = blocks[wrap(rank - step, ranks)];
    const Range in = blocks[wrap(rank - step - 1, ranks)];
    exchange(
        b, out.length, in.length, call.segment_bytes(),
        [&](Range s) { b.put(right, b.output(out.sub(s))); },
        [&](Range s) {
          const Message m = b.wait(left, s.length);
          b.copy(b.output(in.sub(s)), b.slot(m, Range{0, s.length}));
        });
  }
}

}  // namespace carillon
