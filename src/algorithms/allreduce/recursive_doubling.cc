// SPDX-License-Identifier: Apache-2.0
//
// allreduce.recursive_doubling: in step i base ranks 2^i apart exchange their partial results;
// teams that are no power of two are folded (common/fold.h).
//
// Source: Thakur, Rabenseifner, Gropp 2005.
//
// 5 ranks (base 0 2 3 4, extra 1; 01 stands for x0 (op) x1):
//            0       1       2       3       4
//   start    0       1       2       3       4
//   fold     01      .       2       3       4
//   step 0   012     .       012     34      34
//   step 1   01234   .       01234   01234   01234
//   unfold   01234   01234   01234   01234   01234
//
// Cost: log2 P (alpha + n beta + n gamma); two more steps if P is no power of two.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/fold.h"
#include "algorithms/common/order.h"

namespace carillon {
namespace {

void emit_extra(const Call& call, Builder& b) {
  const Rank proxy = Fold::other(call.rank);
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    b.put(proxy, b.input(s));
    const Message m = b.wait(proxy, s.length);
    b.copy(b.output(s), b.slot(m, Range{0, s.length}));
  });
}

}  // namespace

void emit_allreduce_recursive_doubling(const Call& call, Builder& b) {
  const Fold fold(call.shared.ranks);
  if (fold.is_extra(call.rank)) {
    emit_extra(call, b);
    return;
  }
  const Rank index = fold.index(call.rank);
  const Rank extra = Fold::other(call.rank);
  const bool has_extra = fold.has_extra(call.rank);
  b.segments(call.shared.block_bytes(), call.segment_bytes(), [&](Range s) {
    Buffer sum = b.input(s);
    const auto add = [&](Rank peer) {
      const Message m = b.wait(peer, s.length);
      reduce_pair(b, b.output(s), sum, b.slot(m, Range{0, s.length}), peer < call.rank);
      sum = b.output(s);
    };
    if (has_extra) add(extra);
    for (Rank mask = 1; mask < fold.size(); mask *= 2) {
      const Rank partner = fold.base(index ^ mask);
      b.put(partner, sum);
      add(partner);
    }
    if (has_extra) b.put(extra, sum);
  });
}

}  // namespace carillon
