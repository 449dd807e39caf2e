// SPDX-License-Identifier: Apache-2.0
//
// exscan.chain: every rank waits for the prefix of the rank before it, passes it on with its own
// part reduced onto it, and keeps it as it came, segment by segment.
//
// Source: none; the obvious shape.
//
// 5 ranks (01 stands for x0 (op) x1):
//            0       1       2       3       4
//   step 1   .       0       .       .       .
//   step 2   .       0       01      .       .
//   step 4   .       0       01      012     0123
//
// Cost: (P-2 + S) (alpha + n/S (beta + gamma)) with S segments.
// Restrictions: none.
#include <algorithm>

#include "algorithms/catalogue.h"

namespace carillon {

void emit_exscan_chain(const Call& call, Builder& b) {
  const Rank rank = call.rank;
  const bool is_last = rank + 1 == call.shared.ranks;
  const std::int64_t bytes = call.shared.block_bytes();
  const std::int64_t segment = call.segment_bytes();
  const bool between = rank > 0 && !is_last;
  const Range scratch = b.allocate_scratch(between ? std::min(bytes, segment) : 0);
  b.segments(bytes, segment, [&](Range s) {
    if (rank == 0) {
      b.put(1, b.input(s));
      return;
    }
    const Message m = b.wait(rank - 1, s.length);
    const Buffer prefix = b.slot(m, Range{0, s.length});
    if (!is_last) {
      const Buffer next = b.scratch({scratch.offset, s.length});
      b.reduce(next, prefix, b.input(s));
      b.put(rank + 1, next);
    }
    b.copy(b.output(s), prefix);
  });
}

}  // namespace carillon
