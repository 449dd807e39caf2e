// SPDX-License-Identifier: Apache-2.0
//
// allgather.bruck: a rank that has the blocks of w ranks, its own first, puts them to the ranks w,
// 2w,
// ..., (k-1) w before it, so that all have k w blocks afterwards. Blocks go straight to their place
// in the output (two runs where they wrap around), so that no final rotation is needed.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all
// communications in multiport message-passing systems", 1997.
//
// 5 ranks, blocks a b c d e, k = 2:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   step 0   ab      bc      cd      de      ea
//   step 1   abcd    bcde    cdea    deab    eabc
//   step 2   abcde   abcde   abcde   abcde   abcde
//
// Cost: ceil(logk P) alpha + (P-1) n beta, n: one block, where the k-1 messages of a step overlap:
// if all blocks together fit a segment, short ones all, of longer ones as many as a rank is
// guaranteed in flight.
// Restrictions: none. For short blocks k > 2, for long ones 2.
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
  struct Exchange {
    Rank to = 0, from = 0;
    Pieces out = Pieces(), in = Pieces();
  };
  // Of a step in which every rank has `have` blocks.
  const auto exchange = [&](std::int64_t have, std::int64_t digit) {
    const std::int64_t distance = digit * have;
    const auto count = static_cast<Rank>(std::min(have, ranks - distance));
    Exchange each{.to = wrap(rank - distance, ranks), .from = wrap(rank + distance, ranks)};
    if (have == 1) {
      each.out.add(b.input(whole));
    } else {
      each.out = run(rank, count);
    }
    each.in = run(each.from, count);
    return each;
  };
  const auto take = [&](const Exchange& each, Range s) {
    const Message m = b.wait(each.from, s.length);
    b.copy(each.in.slice(s), b.slot(m, Range{0, s.length}));
  };
  for (std::int64_t have = 1; have < ranks; have *= call.params.k) {
    const auto digits =
        static_cast<Rank>(std::min<std::int64_t>(call.params.k - 1, (ranks - 1) / have));
    const std::int64_t longest = have * blocks.longest();  // of the step's messages
    const bool is_short = longest <= call.segment_bytes();
    const Rank in_flight = longest <= call.limits.inline_bytes ? digits : call.limits.large_slots;
    const Rank ahead = is_short ? std::min(digits, in_flight) : 1;
    for (Rank digit = 1; digit < digits + ahead; ++digit) {
      const Rank taken = digit - ahead + 1;
      if (!is_short) {
        const Exchange each = exchange(have, digit);
        exchange_around(
            b, each.out, each.in, call.segment_bytes(),
            [&](Range s) { b.put(each.to, each.out.slice(s)); }, [&](Range s) { take(each, s); });
        continue;
      }
      if (digit <= digits) {
        const Exchange each = exchange(have, digit);
        b.put(each.to, each.out.slice(Range{0, each.out.length()}));
      }
      if (taken < 1) continue;
      const Exchange each = exchange(have, taken);
      take(each, Range{0, each.in.length()});
    }
    if (have == 1) b.copy(b.output(blocks[rank]), b.input(whole));
  }
}

}  // namespace carillon
