// SPDX-License-Identifier: Apache-2.0
//
// allreduce.circulant: a reduce-scatter over distances that halve around the ring, then an
// allgather the same way back (common/circulant.h): as few rounds for any number of ranks as for a
// power of two, and no vector more than once.
//
// Source: Bernaschi, Iannello, Lauria, "Efficient implementation of reduce-scatter in MPI", 2003;
// J. L. Traff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
//
// 3 ranks, blocks a b c; [01]ab: blocks a b of x0 (op) x1:
//            0            1            2
//   start    [0]abc       [1]abc       [2]abc
//   step 0   [01]a [0]b   [12]b [1]c   [20]c [2]a
//   step 1   [012]a       [012]b       [012]c
//   step 2   [012]ab      [012]bc      [012]ca
//   step 3   abc          abc          abc
//
// Cost: 2 ceil(log2 P) alpha + 2 (P-1)/P n beta + (P-1)/P n gamma.
// Restrictions: the operator must commute.
#include "algorithms/common/circulant.h"

#include "algorithms/catalogue.h"

namespace carillon {

void emit_allreduce_circulant(const Call& call, Builder& b) {
  const Shared& shared = call.shared;
  const auto output = [&](Range range) { return b.output(range); };
  Circulant circulant(call, b, Blocks(shared.count, shared.element_bytes, shared.ranks), output);
  b.phase("reduce_scatter");
  circulant.reduce_scatter(output);
  b.phase("allgather");
  circulant.allgather();
}

}  // namespace carillon
