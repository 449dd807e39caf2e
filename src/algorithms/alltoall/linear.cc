// SPDX-License-Identifier: Apache-2.0
//
// alltoall.linear: in step i every rank sends to the rank i after it and receives from the one i
// before it, where the block belongs (common/pairwise_tables.h): what alltoallv.pairwise does with
// tables. In place the input is copied before, or, if it is long or nodes have a rank each, it is
// alltoall.pairwise.
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
#include "algorithms/common/pairwise_tables.h"

namespace carillon {
namespace {

constexpr std::int64_t kMostStagedBytes = 512 << 10;

}  // namespace

void emit_alltoall_linear(const Call& call, Builder& b) {
  const Blocks blocks = Blocks::per_rank(call);
  if (call.local.in_place) {
    // Ranks that share a NIC wait for it longer than they copy what caches hold.
    const bool shares = call.limits.nodes && call.limits.nodes->largest() > 1;
    const std::int64_t bytes = call.shared.block_bytes() * call.shared.ranks;
    if (!shares || bytes > kMostStagedBytes) return emit_alltoall_pairwise(call, b);
    b.enter_staged();
  }
  exchange_pairwise(
      call, b, [&](Rank peer) { return b.input(blocks[peer]); },
      [&](Rank peer) { return b.output(blocks[peer]); });
  if (call.local.in_place) b.leave();
}

}  // namespace carillon
