// SPDX-License-Identifier: Apache-2.0
//
// allgatherv.pairwise: in step i every rank sends its block to the rank i after it and receives
// that of the one i before it (common/pairwise_exchange.h).
//
// Source: the textbook pairwise exchange.
//
// 5 ranks, blocks a b c d e:
//            0       1       2       3       4
//   start    a       b       c       d       e
//   step 1   a...e   ab      bc      cd      de
//   step 2   a..de   ab..e   abc     bcd     cde
//   step 4   abcde   abcde   abcde   abcde   abcde
//
// Cost: (P-1) alpha + (P-1 times the own block, or the others' blocks, whichever is more) beta.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/pairwise_exchange.h"

namespace carillon {

void emit_allgatherv_pairwise(const Call& call, Builder& b) {
  exchange_pairwise_by_tables(call, b);
}

}  // namespace carillon
