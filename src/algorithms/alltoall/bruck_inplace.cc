// SPDX-License-Identifier: Apache-2.0
//
// alltoall.bruck_inplace: Bruck's exchange as it was published. All blocks are rotated into scratch
// memory, index j (the block that has j ranks to go) at place j; what arrives takes the places of
// what was put; in the end the blocks are turned round into the output.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997.
//
// 5 ranks, radix 2; places 0 to 4 of ranks 0 and 1 (02: the block from rank 0 to rank 2):
//            0                1
//   start    00 01 02 03 04   10 11 12 13 14
//   rotate   00 01 02 03 04   11 12 13 14 10
//   step 0   00 40 02 42 04   11 01 13 03 10      places 1 3 go one rank on
//   step 1   00 40 30 20 04   11 01 41 31 10      places 2 3 go two ranks on
//   step 2   00 40 30 20 10   11 01 41 31 21      place 4 goes four ranks on
//   turn     00 10 20 30 40   01 11 21 31 41
//
// Cost: ceil(log2 P) (alpha + P/2 n beta), n: one block; each byte is copied twice to be rotated
// and turned, once or twice in each step. Step i has P/2^(i+1) runs of 2^i blocks. Radix r: r - 1
// messages of P/r blocks in each of log_r P rounds. Restrictions: a radix is at most P. Parameters:
// k (radix), memory. For short blocks.
#include "algorithms/catalogue.h"
#include "algorithms/common/bruck.h"

namespace carillon {

void emit_alltoall_bruck_inplace(const Call& call, Builder& b) {
  Bruck bruck(call, b);
  const Range places = b.allocate_scratch(bruck.all().length);
  const auto place = [&](Rank index) { return b.scratch(places.sub(bruck.block(index))); };
  const auto place_of = [&](const BruckStep& /*step*/, Rank index) { return place(index); };

  b.phase("rotate");
  bruck.rotate(0, place, [&](Rank index) { return b.input(bruck.block_after(index)); });
  b.phase("exchange");
  bruck.exchange(place_of, [&](const BruckStep& step) { return bruck.pieces(step, place_of); });
  b.phase("turn");
  bruck.rotate(
      0, [&](Rank index) { return b.output(bruck.block_after(-index)); }, place);
}

}  // namespace carillon
