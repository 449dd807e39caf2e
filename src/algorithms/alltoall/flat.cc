// SPDX-License-Identifier: Apache-2.0
//
// alltoall.flat: everybody puts the others' blocks where all can read them, every rank picks its
// own out of each: one message per rank instead of P-1.
//
// Source: none; the shortest exchange where one write can be read by all.
//
// 5 ranks (02: the block from rank 0 to rank 2):
//            0                1                2                3                4
//   start    00 01 02 03 04   10 11 12 13 14   20 21 22 23 24   30 31 32 33 34   40 41 42 43 44
//   step 0   00 10 20 30 40   01 11 21 31 41   02 12 22 32 42   03 13 23 33 43   04 14 24 34 44
//
// Cost: alpha + (P-1) n beta to write (n: one block), (P-1) n beta to read.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/personalized.h"
#include "algorithms/common/segments.h"

namespace carillon {

void emit_alltoall_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Personalized messages(call, b);
  const Blocks& blocks = messages.blocks();
  const bool one_group = messages.group() == shared.ranks;
  // In place, what arrives for one group would overwrite what is still to be put to the next.
  const bool staged = call.local.in_place && !one_group;
  const Range all = blocks.span(0, shared.ranks);
  const Range stage = b.allocate_scratch(staged ? all.length : 0);
  const auto source = [&](Range range) {
    return staged ? b.scratch(stage.sub(range)) : b.input(range);
  };
  if (staged) b.copy(b.scratch(stage), b.input(all));

  for (Rank first = 0; first < shared.ranks; first += messages.group()) {
    const auto put = [&](Range s) {
      messages.put(b, first, s, source);
      if (first == 0) b.copy(b.output(blocks[call.rank].sub(s)), b.input(blocks[call.rank].sub(s)));
    };
    const auto take = [&](Range s) {
      for (Rank peer = 0; peer < shared.ranks; ++peer) {
        if (peer == call.rank) continue;
        const Buffer part = messages.wait(b, peer, first, s);
        if (messages.serves_me(first)) b.copy(b.output(blocks[peer].sub(s)), part);
      }
    };
    const bool in_turn = call.local.in_place || !one_group;
    put_ahead(b, shared.block_bytes(), messages.segment_bytes(), in_turn, put, take);
  }
}

}  // namespace carillon
