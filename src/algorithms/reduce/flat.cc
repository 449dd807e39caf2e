// SPDX-License-Identifier: Apache-2.0
//
// reduce.flat: everybody puts its vector to the root, the root reduces straight from the slots,
// in rank order.
//
// Source: none; the obvious shape.
//
// 5 ranks, root 1 (01 stands for x0 (op) x1):
//            0      1       2      3      4
//   start    0      1       2      3      4
//   step 0   .      01234   .      .      .
//
// Cost: alpha + (P-1) n gamma at the root, which reads (P-1) n bytes.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/order.h"

namespace carillon {

void emit_reduce_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t segment = call.segment_bytes();
  if (call.rank != shared.root) {
    b.segments(shared.block_bytes(), segment, [&](Range s) { b.put(shared.root, b.input(s)); });
    return;
  }
  const bool staged = call.local.in_place && call.rank >= 2;
  const Range prefix = b.allocate_scratch(staged ? std::min(segment, shared.block_bytes()) : 0);
  b.segments(shared.block_bytes(), segment, [&](Range s) {
    const Buffer dst = b.output(s);
    const Buffer before = staged ? b.scratch({prefix.offset, s.length}) : dst;
    reduce_in_rank_order(b, shared.ranks, call.rank, dst, before, [&](Rank rank) {
      if (rank == call.rank) return b.input(s);
      const Message m = b.wait(rank, s.length);
      return b.slot(m, Range{0, s.length});
    });
  });
}

}  // namespace carillon
