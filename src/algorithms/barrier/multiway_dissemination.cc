// SPDX-License-Identifier: Apache-2.0
//
// barrier.multiway_dissemination: in step i every rank signals the ranks k^i, 2 k^i, ...,
// (k-1) k^i after it and waits for those as far before it.
//
// Source: Hoefler, Mehlan, Mietke, Rehm, "Fast barrier synchronization for InfiniBand", IPDPS 2006.
//
// 7 ranks, k = 3; each column lists whose arrival a rank knows of:
//            0          1          2          3          4          5          6
//   start    0          1          2          3          4          5          6
//   step 0   560        601        012        123        234        345        456
//   step 1   all        all        all        all        all        all        all
//
// Cost: ceil(log_k P) alpha, and the calls for k-1 messages in each step.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_barrier_multiway_dissemination(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  for (std::int64_t distance = 1; distance < ranks; distance *= call.params.k) {
    const std::int64_t farthest = distance * (call.params.k - 1);
    for (std::int64_t away = distance; away <= farthest && away < ranks; away += distance) {
      b.signal(wrap(call.rank + away, ranks));
    }
    for (std::int64_t away = distance; away <= farthest && away < ranks; away += distance) {
      b.wait(wrap(call.rank - away, ranks), 0);
    }
  }
}

}  // namespace carillon
