// SPDX-License-Identifier: Apache-2.0
//
// alltoall.bruck_resident: blocks stay where they land. Nothing is rotated first: a block is put
// from the input the first time, later from where the message lies that brought it. A message lands
// in one range, in the order of indices (index j: the block that has j ranks to go), and what has
// arrived is sorted into the output in the end.
//
// Source: Bruck, Ho, Kipnis, Upfal, Weathersby 1997; without a rotation and received whole as in
// UCC (tl/ucp, alltoall_bruck).
//
// 5 ranks, radix 2; what lands at ranks 0 and 1 (02: the block from rank 0 to rank 2):
//            0                1
//   start    00 01 02 03 04   10 11 12 13 14
//   step 0   40 42            01 03               indices 1 3 go one rank on
//   step 1   30 20            41 31               indices 2 3, of the input and of step 0, go two
//   step 2   10               21                  index 4 goes four ranks on
//   sort     00 10 20 30 40   01 11 21 31 41
//
// Messages stay in their slots if those suffice (short ones, or no more than a rank is guaranteed
// in flight); else they are copied to scratch memory, each in one piece.
//
// Cost: ceil(log2 P) (alpha + P/2 n beta), n: one block; each byte is copied once in the end and at
// most twice in each step. The lists of the first steps have a run for each block.
// Radix r: r - 1 messages of P/r blocks in each of log_r P rounds.
// Restrictions: a radix is at most P. Parameters: k (radix), memory. For short blocks.
#include "algorithms/catalogue.h"
#include "algorithms/common/bruck.h"

namespace carillon {
namespace {

// What a step has brought: one range, of scratch memory or of a slot.
struct Landing {
  BruckStep step;
  Buffer place;
};

}  // namespace

void emit_alltoall_bruck_resident(const Call& call, Builder& b) {
  Bruck bruck(call, b);
  std::vector<Landing> landings;
  const auto landed = [&](const Landing& landing, Rank index) {
    Buffer block = landing.place;
    block.range = block.range.sub(bruck.block(landing.step.place_of(index)));
    return block;
  };
  const auto last_landing = [&](Rank index) -> const Landing& {
    return landings[static_cast<std::size_t>(last_bruck_step(call.params.k, index))];
  };
  const auto source = [&](const BruckStep& step, Rank index) {
    const auto below = static_cast<Rank>(index % step.weight);  // its digits of earlier rounds
    if (below == 0) return b.input(bruck.block_after(index));
    return landed(last_landing(below), index);
  };

  Rank messages = 0;
  bruck.for_each_step([&](const BruckStep& /*step*/) { ++messages; });
  const bool stay = call.params.two_sided || bruck.longest() <= call.limits.inline_bytes ||
                    messages <= call.limits.large_slots;
  b.phase("exchange");
  if (stay && bruck.longest() <= call.segment_bytes()) {
    bruck.exchange_kept(source, [&](const BruckStep& step, const Message& m) {
      landings.push_back({step, b.slot(m, Range{0, bruck.bytes(step)})});
    });
  } else {
    bruck.exchange(source, [&](const BruckStep& step) {
      landings.push_back({step, b.scratch(b.allocate_scratch(bruck.bytes(step)))});
      Pieces one;
      one.add(landings.back().place);
      return one;
    });
  }
  b.phase("sort");
  b.copy(b.output(bruck.own()), b.input(bruck.own()));
  bruck.rotate(
      1, [&](Rank index) { return b.output(bruck.block_after(-index)); },
      [&](Rank index) { return landed(last_landing(index), index); });
}

}  // namespace carillon
