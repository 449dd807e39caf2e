// SPDX-License-Identifier: Apache-2.0
//
// alltoall.bruck_zerocopy: Bruck's exchange towards lower ranks, between the output and a second
// buffer. A block that has an even number of steps left lands in the output, at the place of its
// source, one that has an odd number left in the second buffer: so the last step brings it to the
// output, it never lands in the memory that the same step puts, and there are no rotations. It is
// put from the input the first time.
//
// Source: Traff, Rougier, Hunold 2014.
//
// 5 ranks, radix 2; output and second buffer of rank 0 (02: the block from rank 0 to rank 2); index
// j has j ranks down to go, 3 in two steps, the others in one:
//            output                     second, by index
//   start    00  .  .  .  .             .  .  .  .  .
//   step 0   00 10  .  .  .             .  .  . 13  .     indices 1 3 go one rank down
//   step 1   00 10 20 30  .             .  .  . 13  .     indices 2 3 go two ranks down
//   step 2   00 10 20 30 40             .  .  . 13  .     index 4 goes four ranks down
//
// A put reads its bytes before what arrives is copied, so that here, too, blocks go from slots to
// their buffers. What is saved are the rotations.
//
// Cost: ceil(log2 P) (alpha + P/2 n beta), n: one block; each byte is copied once or twice in each
// step. Step i has P/2^(i+1) runs of 2^i blocks, each in one buffer but for its first block, which
// comes from the input.
// Radix r: r - 1 messages of P/r blocks in each of log_r P rounds.
// Restrictions: a radix is at most P. In place, blocks of the input that others overwrite before
// they are put are copied first. Parameters: k (radix), memory. For short blocks.
#include "algorithms/catalogue.h"
#include "algorithms/common/bruck.h"

namespace carillon {
namespace {

// How many digits of the index are not zero, and so how many steps it takes.
std::int32_t steps_of(std::int64_t index, Rank radix) {
  std::int32_t steps = 0;
  for (; index > 0; index /= radix) steps += index % radix != 0 ? 1 : 0;
  return steps;
}

// In place, what lands in the output before the block that was there has been put for the first
// time: that one is staged.
class Overwritten {
 public:
  Overwritten(const Call& call, bool by_segments)
      : ranks_(call.shared.ranks), radix_(call.params.k), by_segments_(by_segments) {}

  // The block of that index. Where it is lies first the one of the opposite index.
  [[nodiscard]] bool holds(Rank index) const {
    const Rank landing = ranks_ - index;
    const bool lands_at_once = steps_of(landing, radix_) % 2 == 1;
    const std::ptrdiff_t put = step(index, 0), landed = step(landing, lands_at_once ? 0 : 1);
    return by_segments_ ? put >= landed : put > landed;
  }

 private:
  // The number of its step after so many others, of those of all indices.
  [[nodiscard]] std::ptrdiff_t step(std::int64_t index, int others) const {
    for (std::ptrdiff_t round = 0;; ++round, index /= radix_) {
      if (index % radix_ == 0 || others-- > 0) continue;
      return round * (radix_ - 1) + static_cast<std::ptrdiff_t>(index % radix_) - 1;
    }
  }

  Rank ranks_, radix_;
  bool by_segments_;
};

}  // namespace

void emit_alltoall_bruck_zerocopy(const Call& call, Builder& b) {
  Bruck bruck(call, b, Towards::kLower);
  const Range second = b.allocate_scratch(bruck.all().length);
  const Overwritten overwritten(call, bruck.longest() > call.segment_bytes());
  const auto is_staged = [&](Rank index) {
    return call.local.in_place && overwritten.holds(index);
  };
  const Range stage = b.allocate_scratch(call.local.in_place ? bruck.all().length : 0);
  BufferList staged, source_of_staged;
  for (Rank index = call.shared.ranks - 1; index > 0; --index) {
    const Range block = bruck.block_after(-index);
    if (!is_staged(index)) continue;
    staged.add(b.scratch(stage.sub(block)));
    source_of_staged.add(b.input(block));
  }
  b.copy(staged, source_of_staged);
  // Where the block of that index is when it has so many steps left.
  const auto place = [&](Rank index, std::int32_t left) {
    return left % 2 == 0 ? b.output(bruck.block_after(index))
                         : b.scratch(second.sub(bruck.block(index)));
  };
  const auto left_before = [&](const BruckStep& step, Rank index) {
    return steps_of(index / step.weight, call.params.k);
  };
  const auto source = [&](const BruckStep& step, Rank index) {
    if (index % step.weight != 0) return place(index, left_before(step, index));
    const Range block = bruck.block_after(-index);
    return is_staged(index) ? b.scratch(stage.sub(block)) : b.input(block);
  };
  const auto target = [&](const BruckStep& step, Rank index) {
    return place(index, left_before(step, index) - 1);
  };

  bruck.exchange(source, [&](const BruckStep& step) { return bruck.pieces(step, target); });
  b.copy(b.output(bruck.own()), b.input(bruck.own()));
}

}  // namespace carillon
