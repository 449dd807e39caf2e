// SPDX-License-Identifier: Apache-2.0
//
// allgather.ring: every block travels once around the ring.
//
// Source: the textbook ring; Thakur, Rabenseifner, Gropp 2005 discuss it.
//
// 5 ranks, blocks a b c d e:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   step 0   a...e   ab      bc      cd      de
//   step 1   a..de   ab..e   abc     bcd     cde
//   step 3   abcde   abcde   abcde   abcde   abcde
//
// Cost: (P-1) (alpha + n beta), n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_allgather_ring(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Rank rank = call.rank;
  const Rank left = ring_neighbours(rank, shared.ranks).left;
  const Rank right = ring_neighbours(rank, shared.ranks).right;
  const Blocks blocks = Blocks::per_rank(call);
  for (const int step : b.steps(shared.ranks - 1)) {
    const Range out = blocks[wrap(rank - step, shared.ranks)];
    const Range in = blocks[wrap(rank - step - 1, shared.ranks)];
    exchange(
        b, out.length, in.length, call.segment_bytes(),
        [&](Range s) { b.put(right, step == 0 ? b.input(s) : b.output(out.sub(s))); },
        [&](Range s) {
          const Message m = b.wait(left, s.length);
          b.copy(b.output(in.sub(s)), b.slot(m, Range{0, s.length}));
        });
  }
  b.copy(b.output(blocks[rank]), b.input(Range{0, blocks[rank].length}));
}

}  // namespace carillon
