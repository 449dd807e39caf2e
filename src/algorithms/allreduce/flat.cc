// SPDX-License-Identifier: Apache-2.0
//
// allreduce.flat: everybody puts its vector to all, everybody reduces all of them in rank order,
// straight from the slots.
//
// Source: none; the shortest exchange where one write can be read by all.
//
// 5 ranks (01 stands for x0 (op) x1):
//            0       1       2       3       4
//   start    0       1       2       3       4
//   step 0   01234   01234   01234   01234   01234
//
// Cost: alpha + n beta to write, (P-1) n beta to read, (P-1) n gamma.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/order.h"
#include "algorithms/common/others.h"
#include "algorithms/common/segments.h"

namespace carillon {

void emit_allreduce_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const std::int64_t segment = call.segment_bytes();
  const bool staged = call.local.in_place && call.rank >= 2;
  const Range prefix = b.allocate_scratch(staged ? std::min(segment, shared.block_bytes()) : 0);
  put_ahead(
      b, shared.block_bytes(), segment, call.local.in_place,
      [&](Range s) { put_others(call, b, b.input(s)); },
      [&](Range s) {
        const Buffer dst = b.output(s);
        const Buffer before = staged ? b.scratch({prefix.offset, s.length}) : dst;
        reduce_in_rank_order(b, shared.ranks, call.rank, dst, before, [&](Rank rank) {
          if (rank == call.rank) return b.input(s);
          const Message m = wait_other(call, b, rank, s.length);
          return b.slot(m, Range{0, s.length});
        });
      });
}

}  // namespace carillon
