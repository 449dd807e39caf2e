// SPDX-License-Identifier: Apache-2.0
//
// bcast.chain: every rank passes each segment to the next one, straight from the slot it arrived
// in; all links are busy once the pipeline is full.
//
// Source: the textbook pipeline.
//
// 5 ranks, root 0, segments a b c:
//            0      1      2      3      4
//   start    abc    .      .      .      .
//   step 0   abc    a      .      .      .
//   step 1   abc    ab     a      .      .
//   step 2   abc    abc    ab     a      .
//   step 5   abc    abc    abc    abc    ab
//   step 6   abc    abc    abc    abc    abc
//
// Cost: (P - 2 + n/s) (alpha + s beta), s the segment.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_bcast_chain(const Call& call, Builder& b) {
  const Vranks vranks{call.shared.ranks, call.shared.root};
  const Rank v = vranks.vrank(call.rank);
  const Rank next = vranks.rank(v + 1);
  const bool last = v == call.shared.ranks - 1;
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    if (v == 0) {
      b.put(next, b.input(s));
      return;
    }
    const Message m = b.wait(vranks.rank(v - 1), s.length);
    const Buffer arrived = b.slot(m, Range{0, s.length});
    if (!last) b.put(next, arrived);
    b.copy(b.output(s), arrived);
  });
}

}  // namespace carillon
