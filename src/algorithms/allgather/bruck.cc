// SPDX-License-Identifier: Apache-2.0
//
// allgather.bruck: in step i every rank puts all blocks it has to the rank 2^i before it. Blocks
// go straight to their place in the output (two runs where they wrap around), so that no final
// rotation is needed.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997.
//
// 5 ranks, blocks a b c d e:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   step 0   ab      bc      cd      de      ea
//   step 1   abcd    bcde    cdea    deab    eabc
//   step 2   abcde   abcde   abcde   abcde   abcde
//
// Cost: ceil(log2 P) alpha + (P-1) n beta, n: one block.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_allgather_bruck(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Rank rank = call.rank;
  const Blocks blocks = Blocks::per_rank(call);
  const Range whole{0, blocks[rank].length};
  const auto run = [&](Rank first, Rank count) {  // blocks first, first + 1, ..., wrapping around
    Pieces pieces;
    pieces.add(b.output(blocks.span(first, std::min(first + count, ranks))));
    if (first + count > ranks) pieces.add(b.output(blocks.span(0, first + count - ranks)));
    return pieces;
  };
  for (Rank have = 1; have < ranks; have *= 2) {
    const Rank count = std::min(have, ranks - have);
    const Rank to = wrap(rank - have, ranks);
    const Rank from = wrap(std::int64_t{rank} + have, ranks);
    Pieces out = run(rank, count);
    if (have == 1) {
      out = Pieces();
      out.add(b.input(whole));
    }
    const Pieces in = run(from, count);
    exchange_around(
        b, out, in, call.segment_bytes(), [&](Range s) { b.put(to, out.slice(s)); },
        [&](Range s) {
          const Message m = b.wait(from, s.length);
          b.copy(in.slice(s), b.slot(m, Range{0, s.length}));
        });
    if (have == 1) b.copy(b.output(blocks[rank]), b.input(whole));
  }
}

}  // namespace carillon
