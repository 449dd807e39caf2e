// SPDX-License-Identifier: Apache-2.0
//
// reduce_scatter_block.circulant: half of what a rank has left goes to the rank half as far around
// the ring, in as few rounds for any number of ranks as for a power of two (common/circulant.h).
//
// Source: Bernaschi, Iannello, Lauria, "Efficient implementation of reduce-scatter in MPI", 2003;
// J. L. Traff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
//
// 3 ranks, blocks a b c; [01]a: block a of x0 (op) x1:
//            0            1            2
//   start    [0]abc       [1]abc       [2]abc
//   step 0   [01]a [0]b   [12]b [1]c   [20]c [2]a
//   step 1   [012]a       [012]b       [012]c
//
// Cost: ceil(log2 P) alpha + (P-1) n (beta + gamma), n: one block.
// Restrictions: the operator must commute.
#include "algorithms/common/circulant.h"

#include "algorithms/catalogue.h"

namespace carillon {

void emit_reduce_scatter_block_circulant(const Call& call, Builder& b) {
  const Blocks blocks = Blocks::per_rank(call);
  const Range own = blocks[call.rank];
  const std::int64_t all = blocks.span(0, call.shared.ranks).length;
  const Range scratch = b.allocate_scratch(call.shared.ranks > 2 ? all : 0);
  Circulant circulant(call, b, blocks, [&](Range range) { return b.scratch(scratch.sub(range)); });
  circulant.reduce_scatter([&](Range range) {
    return b.output({range.offset - own.offset, range.length});
  });
}

}  // namespace carillon
