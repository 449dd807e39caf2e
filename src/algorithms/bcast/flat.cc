// SPDX-License-Identifier: Apache-2.0
//
// bcast.flat: the root writes each segment once, everybody reads it.
//
// Source: none; the natural shape where one write can be read by all (shared memory, multicast).
//
// 5 ranks, root 1, two segments a b:
//            0      1      2      3      4
//   start    .      ab     .      .      .
//   step 0   a      ab     a      a      a
//   step 1   ab     ab     ab     ab     ab
//
// Cost: alpha + n beta to write, n beta to read; the root's slots are free again when the
// slowest reader is done.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/others.h"

namespace carillon {

void emit_bcast_flat(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  b.segments(shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    if (call.rank == shared.root) {
      put_others(call, b, b.input(s));
    } else {
      const Message m = wait_other(call, b, shared.root, s.length);
      b.copy(b.output(s), b.slot(m, Range{0, s.length}));
    }
  });
}

}  // namespace carillon
