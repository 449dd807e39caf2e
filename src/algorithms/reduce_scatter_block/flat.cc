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
#include "algorithms/catalogue.h"
#include "algorithms/common/order.h"
#include "algorithms/common/personalized.h"
#include "algorithms/common/segments.h"

namespace carillon {

void emit_reduce_scatter_block_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const Personalized messages(call, b);
  const bool one_group = messages.group() == shared.ranks;
  for (Rank first = 0; first < shared.ranks; first += messages.group()) {
    const auto put = [&](Range s) {
      messages.put(b, first, s, [&](Range range) { return b.input(range); });
    };
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
    const bool in_turn = call.local.in_place || !one_group;
    put_ahead(b, shared.block_bytes(), messages.segment_bytes(), in_turn, put, take);
  }
}

}  // namespace carillon
