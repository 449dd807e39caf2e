// SPDX-License-Identifier: Apache-2.0
//
// alltoall.linear: in step i every rank sends to the rank i after it and receives from the one i
// before it, where the block belongs (common/pairwise_exchange.h): what alltoallv.pairwise does
// with tables. In place it is alltoall.pairwise.
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
// Cost: (P-1) (alpha + n beta), n: one block.
// Restrictions: none.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/pairwise_exchange.h"

namespace carillon {

void emit_alltoall_linear(const Call& call, Builder& b) {
  if (call.local.in_place) return emit_alltoall_pairwise(call, b);
  const Blocks blocks = Blocks::per_rank(call);
  exchange_pairwise(
      call, b, [&](Rank peer) { return b.input(blocks[peer]); },
      [&](Rank peer) { return b.output(blocks[peer]); });
}

}  // namespace carillon
