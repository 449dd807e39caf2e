// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.pairwise: in step i every rank sends to the rank i after it and receives from the one
// i before it, with the lengths of the call's tables (common/pairwise_exchange.h).
//
// Source: the textbook pairwise exchange.
//
// 5 ranks; each column lists "to/from":
//            0       1       2       3       4
//   step 1   1/4     2/0     3/1     4/2     0/3
//   step 2   2/3     3/4     4/0     0/1     1/2
//   step 3   3/2     4/3     0/4     1/0     2/1
//   step 4   4/1     0/2     1/3     2/4     3/0
//
// Cost: (P-1) alpha + (bytes sent or received, whichever is more) beta.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/pairwise_exchange.h"

namespace carillon {

void emit_alltoallv_pairwise(const Call& call, Builder& b) { exchange_pairwise_by_tables(call, b); }

}  // namespace carillon
