// SPDX-License-Identifier: Apache-2.0
//
// barrier.dissemination: in step i every rank signals the rank 2^i after it and waits for the
// one 2^i before it.
//
// Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988.
//
// 5 ranks; each column lists whose arrival a rank knows of:
//            0          1          2          3          4
//   start    0          1          2          3          4
//   step 0   40         01         12         23         34
//   step 1   2340       3401       4012       0123       1234
//   step 2   all        all        all        all        all
//
// Cost: ceil(log2 P) alpha.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_barrier_dissemination(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  for (std::int64_t distance = 1; distance < ranks; distance *= 2) {
    b.signal(wrap(call.rank + distance, ranks));
    b.wait(wrap(call.rank - distance, ranks), 0);
  }
}

}  // namespace carillon
