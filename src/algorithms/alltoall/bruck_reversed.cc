// SPDX-License-Identifier: Apache-2.0
//
// alltoall.bruck_reversed: Bruck's exchange towards lower ranks, in the output. The block that has
// j ranks to go lies j places above the rank's own: the block from s to d ends, at d, at place
// d + (s - d) = s, where it belongs. So blocks are turned round in the beginning, and nothing is
// rotated in the end.
//
// Source: Traff, Rougier, Hunold 2014 (the "modified" Bruck algorithm).
//
// 5 ranks, radix 2; places 0 to 4 of ranks 0 and 1 (02: the block from rank 0 to rank 2):
//            0                1
//   start    00 01 02 03 04   10 11 12 13 14
//   turn     00 04 03 02 01   12 11 10 14 13      0 1 2 3 4 and 4 0 1 2 3 ranks to go
//   step 0   00 10 03 13 01   12 11 21 14 24      blocks with 1 3 to go, one rank down
//   step 1   00 10 20 30 01   12 11 21 31 41      blocks with 2 3 to go, two ranks down
//   step 2   00 10 20 30 40   01 11 21 31 41      blocks with 4 to go, four ranks down
//
// Cost: ceil(log2 P) (alpha + P/2 n beta), n: one block; each byte is copied once to be turned (in
// place twice), and once or twice in each step. Step i has P/2^(i+1) runs of 2^i blocks, and one
// more where they go round the team.
// Radix r: r - 1 messages of P/r blocks in each of log_r P rounds.
// Restrictions: a radix is at most P. Parameters: k (radix), memory. For short blocks.
#include "algorithms/catalogue.h"
#include "algorithms/common/bruck.h"

namespace carillon {

void emit_alltoall_bruck_reversed(const Call& call, Builder& b) {
  Bruck bruck(call, b, Towards::kLower);
  const bool staged = call.local.in_place;
  const Range stage = b.allocate_scratch(staged ? bruck.all().length : 0);
  if (staged) b.copy(b.scratch(stage), b.input(bruck.all()));
  const auto place = [&](Rank index) { return b.output(bruck.block_after(index)); };
  const auto place_of = [&](const BruckStep& /*step*/, Rank index) { return place(index); };

  b.phase("turn");
  bruck.rotate(0, place, [&](Rank index) {
    const Range block = bruck.block_after(-index);
    return staged ? b.scratch(stage.sub(block)) : b.input(block);
  });
  b.phase("exchange");
  bruck.exchange(place_of, [&](const BruckStep& step) { return bruck.pieces(step, place_of); });
}

}  // namespace carillon
