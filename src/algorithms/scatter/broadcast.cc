// SPDX-License-Identifier: Apache-2.0
//
// scatter.broadcast: the root writes all blocks once, one after another; everybody reads its own.
//
// Source: none; the natural shape where one write can be read by all (shared memory).
//
// 5 ranks, root 1, blocks a b c d e:
//            0      1       2      3      4
//   start    .      abcde   .      .      .
//   step 0   a      b       c      d      e
//
// Cost: alpha + P n beta to write, n: one block; n beta to read. One message where scatter.flat
// takes P-1.
// Restrictions: none. On several nodes, where nobody writes once for all, it is scatter.flat.
#include <algorithm>

#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/others.h"

namespace carillon {

void emit_scatter_broadcast(const Call& call, Builder& b) {
  if (!call.limits.one_node()) return emit_scatter_flat(call, b);
  const Shared& shared = call.shared;
  const Blocks blocks = Blocks::per_rank(call);
  const Range own = blocks[call.rank];
  const std::int64_t total = shared.ranks * shared.block_bytes();
  const std::int64_t most = call.segment_bytes();
  for (std::int64_t begin = 0; begin < total; begin += most) {
    const std::int64_t length = std::min(most, total - begin);
    if (call.rank == shared.root) {
      put_others(call, b, b.input({begin, length}));
      continue;
    }
    const Message m = wait_other(call, b, shared.root, length);
    const std::int64_t first = std::max(begin, own.offset);
    const std::int64_t bytes = std::min(begin + length, own.offset + own.length) - first;
    if (bytes <= 0) continue;
    b.copy(b.output({first - own.offset, bytes}), b.slot(m, Range{first - begin, bytes}));
  }
  if (call.rank == shared.root) b.copy(b.output({0, own.length}), b.input(own));
}

}  // namespace carillon
