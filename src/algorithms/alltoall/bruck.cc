// SPDX-License-Identifier: Apache-2.0
//
// alltoall.bruck: in step i every rank passes all blocks that still have to go 2^i ranks (plus
// multiples of 2^{i+1}) on to the rank 2^i after it. Index j holds the block that has j ranks to
// go. Blocks are put from the input the first time and copied to the output the last time, so
// that there are no rotations before and after.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997.
//
// 5 ranks, index 3 = 1 + 2 (02: the block from rank 0 to rank 2):
//            0       1       2       3       4
//   start    03      14      20      31      42
//   step 0   42      03      14      20      31      one rank on
//   step 1   20      31      42      03      14      two ranks on: arrived
//   step 2   -       -       -       -       -       (index 4 only)
//
// Cost: ceil(log2 P) (alpha + P/2 n beta), n: one block; each byte is copied up to log2 P times.
// Restrictions: none. For short blocks.
#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {

void emit_alltoall_bruck(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const Rank rank = call.rank;
  const Blocks blocks = Blocks::per_rank(call);
  const Range all = blocks.span(0, ranks);
  const Range stage = b.allocate_scratch(call.local.in_place ? all.length : 0);
  const Range passing = b.allocate_scratch(all.length);  // index j at block j
  if (call.local.in_place) b.copy(b.scratch(stage), b.input(all));
  const auto input = [&](Range range) {
    return call.local.in_place ? b.scratch(stage.sub(range)) : b.input(range);
  };

  for (std::int64_t step = 1; step < ranks; step *= 2) {
    Pieces out;
    Pieces in;
    for (Rank j = 1; j < ranks; ++j) {
      if ((j & step) == 0) continue;
      const bool first_time = (j & (step - 1)) == 0;
      const bool last_time = j < 2 * step;
      out.add(first_time ? input(blocks[wrap(std::int64_t{rank} + j, ranks)])
                         : b.scratch(passing.sub(blocks[j])));
      in.add(last_time ? b.output(blocks[wrap(rank - j, ranks)])
                       : b.scratch(passing.sub(blocks[j])));
    }
    const Rank to = wrap(rank + step, ranks);
    const Rank from = wrap(rank - step, ranks);
    segments_around(b, out.length(), call.segment_bytes(), out.breaks(), [&](Range s) {
      b.put(to, out.slice(s));
      const Message m = b.wait(from, s.length);
      b.copy(in.slice(s), b.slot(m, Range{0, s.length}));
    });
  }
  b.copy(b.output(blocks[rank]), b.input(blocks[rank]));
}

}  // namespace carillon
