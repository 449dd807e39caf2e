// SPDX-License-Identifier: Apache-2.0
//
// Bruck's exchange of blocks whose lengths have been exchanged before (alltoallv.bruck_two_phase):
// which numbers a rank learns, and which of them is the length of which block.
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/common/bruck.h"
#include "algorithms/common/told_lengths.h"

namespace carillon {

inline constexpr std::int64_t kLongestBytes = 256;  // of a block that goes by more than one rank

/// The numbers that a rank learns in the first phase: the longest block of the rank i before it at
/// i, then the lengths of the blocks that each step brings, in the order of their indices.
class BruckLengths {
 public:
  explicit BruckLengths(const Call& call) : call_(call), numbers_(call.shared.ranks) {
    for_each_bruck_round(call.shared.ranks, call.params.k, [&](BruckStep step, Rank digits) {
      for (step.digit = 1; step.digit <= digits; ++step.digit) {
        starts_.push_back(numbers_);
        numbers_ += step.count();
        most_blocks_ = std::max(most_blocks_, step.count());
        most_numbers_ = std::max(most_numbers_, step.count() + longest_known(step));
      }
    });
  }
  [[nodiscard]] std::int64_t numbers() const { return numbers_; }
  /// A message is one slot's: what is sent before anything is received must not wait for it. Are
  /// those of the first phase?
  [[nodiscard]] bool numbers_fit() const {
    return most_numbers_ * kNumberBytes <= call_.limits.slot_bytes;
  }
  /// The longest blocks of which the same holds in the second phase, and which it pays for.
  [[nodiscard]] std::int64_t most_block_bytes() const {
    return std::min(kLongestBytes, call_.limits.slot_bytes / std::max<Rank>(most_blocks_, 1));
  }
  /// Where the length is of the block of this index after its digits up to the step's.
  [[nodiscard]] std::int64_t after(const BruckStep& step, Rank index) const {
    const std::int64_t moved = index % (step.weight * step.radix);
    return place(last_bruck_step(step.radix, moved), index);
  }
  /// The same before the step; -1: it is one of this rank's own.
  [[nodiscard]] std::int64_t before(const BruckStep& step, Rank index) const {
    const std::ptrdiff_t last = last_bruck_step(step.radix, index % step.weight);
    return last < 0 ? -1 : place(last, index);
  }
  /// How many ranks' longest blocks go with the step: those of the ranks from this one back.
  [[nodiscard]] std::int64_t longest_known(const BruckStep& step) const {
    return std::min(step.weight, call_.shared.ranks - step.distance());
  }

 private:
  [[nodiscard]] std::int64_t place(std::ptrdiff_t number, Rank index) const {
    std::int64_t weight = 1;
    for (std::ptrdiff_t i = number; i >= call_.params.k - 1; i -= call_.params.k - 1) {
      weight *= call_.params.k;
    }
    const BruckStep step{call_.shared.ranks, call_.params.k, weight, 1};
    return starts_[static_cast<std::size_t>(number)] + step.place_of(index);
  }

  const Call& call_;
  std::vector<std::int64_t> starts_;  // by step
  std::int64_t numbers_, most_numbers_ = 0;
  Rank most_blocks_ = 0;
};

/// Calls put(step, reader) and take(step, writer) for all messages.
template <typename Put, typename Take>
void exchange_by_bruck(const Call& call, Put put, Take take) {
  const Rank ranks = call.shared.ranks;
  for_each_bruck_round(ranks, call.params.k, [&](const BruckStep& first, Rank digits) {
    do_bruck_round(
        first, digits, std::min<Rank>(digits, call.limits.large_slots),
        [&](const BruckStep& step) { put(step, wrap(call.rank + step.distance(), ranks)); },
        [&](const BruckStep& step) { take(step, wrap(call.rank - step.distance(), ranks)); });
  });
}

/// buffer(index) for the step's indices.
template <typename Body>
BufferList bruck_list(const BruckStep& step, Body buffer) {
  BufferList list;
  step.for_each_run([&](Rank first, Rank last) {
    for (Rank index = first; index < last; ++index) list.add(buffer(index));
  });
  return list;
}

}  // namespace carillon
