// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.flat: everybody puts its blocks where all can read them, every rank
// reduces its own block in rank order, straight from the slots.
//
// Source: none; the shortest exchange where one write can be read by all.
//
// 5 ranks, blocks a b c d e (A: a of all ranks reduced):
//            0       1       2       3       4
//   start    abcde   abcde   abcde   abcde   abcde
//   step 0   A       B       C       D       E
//
// Cost: alpha + (P-1) n beta to write (n: one block), (P-1) n beta to read, (P-1) n gamma.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/order.h"
#include "algorithms/common/personalized.h"
#include "algorithms/common/segments.h"

namespace carillon {

void emit_reduce_scatter_block_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Personalized messages(call, b);
  const bool one_group = messages.group() == shared.ranks;
  // In place the result overwrites block 0, which a strand of its own may still have to put.
  const std::int64_t block = shared.block_bytes();
  const bool apart =
      call.local.in_place && b.put_all_is_large(std::min(block, messages.segment_bytes()));
  const bool staged = apart && call.rank != 0;
  const Range first_block = b.allocate_scratch(staged ? block : 0);
  if (staged) {
    b.copy(b.scratch(first_block), b.input({0, block}));
    // Whose strands begin after the copy.
    b.enter(call, Members::all(shared.ranks), b.input({}), b.output({}));
  }
  const auto source = [&](Range range) {
    return staged && range.offset < block ? b.scratch(first_block.sub(range)) : b.input(range);
  };
  for (Rank first = 0; first < shared.ranks; first += messages.group()) {
    const auto put = [&](Range s) { messages.put(b, first, s, source); };
    const auto take = [&](Range s) {
      const auto operand = [&](Rank rank) {
        if (rank == call.rank) return b.input(messages.blocks()[rank].sub(s));
        return messages.wait(b, rank, first, s);
      };
      if (messages.serves_me(first)) {
        reduce_in_rank_order(b, shared.ranks, call.rank, b.output(s), b.output(s), operand);
        return;
      }
      for (Rank rank = 0; rank < shared.ranks; ++rank) {
        if (rank != call.rank) operand(rank);
      }
    };
    const bool in_turn = (call.local.in_place && !apart) || !one_group;
    put_ahead(b, block, messages.segment_bytes(), in_turn, put, take);
  }
  if (staged) b.leave();
}

}  // namespace carillon
