// SPDX-License-Identifier: Apache-2.0
//
// barrier.flat: everybody signals all, everybody waits for all.
//
// Source: none; the obvious exchange.
//
// 5 ranks; each column lists whose arrival a rank knows of:
//            0          1          2          3          4
//   start    0          1          2          3          4
//   step 0   all        all        all        all        all
//
// Cost: alpha + (P-1) polls per rank; P messages in total, each read by P-1 ranks.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/others.h"

namespace carillon {

void emit_barrier_flat(const Call& call, Builder& b) {
  put_others(call, b, {});
  for (const Rank peer : b.steps(call.shared.ranks)) {
    if (peer != call.rank) wait_other(call, b, peer, 0);
  }
}

}  // namespace carillon
