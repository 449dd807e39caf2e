// SPDX-License-Identifier: Apache-2.0
//
// allgather.flat: everybody puts its block to all, everybody copies all of them.
//
// Source: none; the shortest exchange where one write can be read by all.
//
// 5 ranks, blocks a b c d e:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   step 0   abcde   abcde   abcde   abcde   abcde
//
// Cost: alpha + n beta to write (n: one block), (P-1) n beta to read; between nodes P-1 messages at
// either end.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/others.h"
#include "algorithms/common/segments.h"

namespace carillon {

void emit_allgather_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Blocks blocks = Blocks::per_rank(call);
  const std::int64_t segment = call.segment_bytes();
  const auto put = [&](Range s) {
    put_others(call, b, b.input(s));
    b.copy(b.output(blocks[call.rank].sub(s)), b.input(s));
  };
  const auto take = [&](Rank peer, Range s) {
    const Message m = wait_other(call, b, peer, s.length);
    b.copy(b.output(blocks[peer].sub(s)), b.slot(m, Range{0, s.length}));
  };
  if (call.weights.empty()) {
    put_ahead(b, shared.block_bytes(), segment, false, put, [&](Range s) {
      for (const int step : b.steps(shared.ranks - 1)) take(other_in_turn(call, b, step), s);
    });
    return;
  }
  b.segments(blocks[call.rank].length, segment, put);
  b.strand();
  // All of a rank's messages at once, which are put to all in turn: of the ranks that are not done
  // the first one must find readers for all its messages.
  for (const Rank peer : b.steps(shared.ranks)) {
    if (peer == call.rank) continue;
    b.segments(blocks[peer].length, segment, [&](Range s) { take(peer, s); });
  }
}

}  // namespace carillon
