// SPDX-License-Identifier: Apache-2.0
//
// allreduce.flat_blocks: everybody puts its vector where all can read it, rank r reduces piece r
// of each segment over all ranks and puts the result to all. A reduce-scatter and an allgather
// of one round each; the next segment is put before the results of this one are waited for.
//
// Source: none; Rabenseifner's idea (see reduce_scatter_allgather) for ranks that share memory.
//
// 5 ranks, one segment of pieces a b c d e (A: a of all ranks reduced, in rank order):
//            0       1       2       3       4
//   start    abcde   abcde   abcde   abcde   abcde
//   step 0   A       B       C       D       E
//   step 1   ABCDE   ABCDE   ABCDE   ABCDE   ABCDE
//
// Cost: (1 + segments) alpha + (3 - 1/P) n beta + (P-1)/P n gamma; two ranks: 2 n beta.
// Restrictions: none.
#include "algorithms/common/flat_blocks.h"

#include <algorithm>

#include "algorithms/catalogue.h"

namespace carillon {

void emit_allreduce_flat_blocks(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  FlatBlocks flat(call, b, FlatBlocks::First::kNext);
  const std::int64_t segment = flat.segment_bytes();
  const bool staged = call.local.in_place && call.rank >= 2;
  const Range first{0, std::min(segment, shared.block_bytes())};
  const Range scratch = b.allocate_scratch(staged ? flat.inner_piece(first, call.rank).length : 0);

  const auto reduce_own = [&](Range s) {
    const Range own = flat.piece(s, call.rank);
    const Buffer dst = b.output(own);
    flat.reduce_own(s, dst, staged ? b.scratch({scratch.offset, own.length}) : dst);
  };
  const auto put_own = [&](Range s) {
    const Range own = flat.piece(s, call.rank);
    if (own.length > 0) put_others(call, b, b.output(own));
  };
  const auto collect = [&](Range s) {
    for (Rank step = 0; step < shared.ranks - 1; ++step) {
      const Rank peer = other_in_turn(call, b, step);
      const Range theirs = flat.piece(s, peer);
      if (theirs.length == 0) continue;
      const Message m = wait_other(call, b, peer, theirs.length);
      b.copy(b.output(theirs), b.slot(m, Range{0, theirs.length}));
    }
  };
  flat_blocks(call, b, flat, reduce_own, put_own, collect);
}

}  // namespace carillon
