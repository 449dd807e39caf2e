// SPDX-License-Identifier: Apache-2.0
//
// reduce.flat_blocks: everybody puts its vector where all can read it, rank r reduces piece r of
// each segment, the root gathers the pieces. The work of reducing is shared by all ranks.
//
// Source: none; reduce_scatter and gather in one round each, for ranks that share memory.
//
// 5 ranks, root 1, one segment of pieces a b c d e (A: a of all ranks reduced):
//            0       1       2       3       4
//   start    abcde   abcde   abcde   abcde   abcde
//   step 0   A       B       C       D       E
//   step 1   .       ABCDE   .       .       .
//
// Cost: 2 alpha + (3 - 2/P) n beta at the root, 2 n beta elsewhere, + (P-1)/P n gamma.
// Restrictions: none.
#include "algorithms/common/flat_blocks.h"

#include <algorithm>

#include "algorithms/catalogue.h"

namespace carillon {

void emit_reduce_flat_blocks(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  // Ranks that share a NIC would hold up one another's messages to one reader.
  const bool apart = call.limits.node_size(call.rank, shared.ranks) == 1;
  using enum FlatBlocks::First;
  FlatBlocks flat(call, b, apart ? kRankZero : kNext);
  const bool is_root = call.rank == shared.root;
  const std::int64_t segment = flat.segment_bytes();
  const Range first{0, std::min(segment, shared.block_bytes())};
  // Room for the own piece of a segment or, where results are put only when all are there, of all.
  const bool keeps_all = flat.needs_strands();
  const Range scratch = b.allocate_scratch(keeps_all ? shared.block_bytes()
                                                     : flat.inner_piece(first, call.rank).length);
  const auto stage = [&](Range own) {
    return b.scratch(keeps_all ? scratch.sub(own) : Range{scratch.offset, own.length});
  };

  const auto reduce_own = [&](Range s) {
    const Range own = flat.piece(s, call.rank);
    flat.reduce_own(s, is_root ? b.output(own) : stage(own), stage(own));
  };
  const auto put_own = [&](Range s) {
    const Range own = flat.piece(s, call.rank);
    if (!is_root && own.length > 0) b.put(shared.root, stage(own));
  };
  const auto collect = [&](Range s) {
    for (Rank peer = 0; is_root && peer < shared.ranks; ++peer) {
      const Range theirs = flat.piece(s, peer);
      if (peer == call.rank || theirs.length == 0) continue;
      const Message m = b.wait(peer, theirs.length);
      b.copy(b.output(theirs), b.slot(m, Range{0, theirs.length}));
    }
  };
  flat_blocks(call, b, flat, reduce_own, put_own, collect);
}

}  // namespace carillon
