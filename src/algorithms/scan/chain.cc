// SPDX-License-Identifier: Apache-2.0
//
// scan.chain: every rank waits for the prefix of the rank before it, reduces its own part onto it
// and passes the result on, segment by segment.
//
// Source: none; the obvious shape.
//
// 5 ranks (01 stands for x0 (op) x1):
//            0       1       2       3       4
//   step 1   0       01      .       .       .
//   step 2   0       01      012     .       .
//   step 4   0       01      012     0123    01234
//
// Cost: (P-2 + S) (alpha + n/S (beta + gamma)) with S segments.
// Restrictions: none.
#include "algorithms/catalogue.h"

namespace carillon {

void emit_scan_chain(const Call& call, Builder& b) {
  const Rank rank = call.rank;
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    Buffer prefix = b.input(s);
    if (rank > 0) {
      const Message m = b.wait(rank - 1, s.length);
      b.reduce(b.output(s), b.slot(m, Range{0, s.length}), prefix);
      prefix = b.output(s);
    }
    if (rank + 1 < call.shared.ranks) b.put(rank + 1, prefix);
    b.copy(b.output(s), prefix);
  });
}

}  // namespace carillon
