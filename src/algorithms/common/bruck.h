// SPDX-License-Identifier: Apache-2.0
//
// The exchange that all of alltoall.bruck_* have in common. A block that has j ranks to go has
// index j, at whatever rank it is. With radix r, in the round of weight w = 1, r, r^2, ... all
// blocks whose index has the digit z there go z w ranks, in one message for each z = 1 ... r - 1.
// The layouts differ in where a rank keeps the block of an index.
//
//   5 ranks, radix 3: index       0    1    2    3    4
//                     digits     00   01   02   10   11
//   round of weight 1, z = 1           x              x      one rank on
//                      z = 2                x                two ranks on
//   round of weight 3, z = 1                     x    x      three ranks on
//
// Messages of a round do not depend on one another: short ones are all put before the first wait,
// of longer ones as many as a rank is guaranteed in flight.
#pragma once

#include <algorithm>
#include <utility>

#include "algorithms/common/lists.h"
#include "algorithms/common/vrank.h"

namespace carillon {

/// A message of each rank: the blocks with `digit` at `weight`.
struct BruckStep {
  Rank ranks = 1;
  Rank radix = 2;
  std::int64_t weight = 1;
  Rank digit = 1;

  [[nodiscard]] std::int64_t distance() const { return digit * weight; }
  /// Calls body(first, last) for the runs first, ..., last - 1 of its indices.
  template <typename Body>
  void for_each_run(Body body) const {
    for (std::int64_t first = distance(); first < ranks; first += weight * radix) {
      const std::int64_t last = std::min<std::int64_t>(first + weight, ranks);
      body(static_cast<Rank>(first), static_cast<Rank>(last));
    }
  }
  /// How many indices it has, and how many of them are below `index`, which is one of them.
  [[nodiscard]] Rank count() const {
    Rank sum = 0;
    for_each_run([&](Rank first, Rank last) { sum += last - first; });
    return sum;
  }
  [[nodiscard]] Rank place_of(Rank index) const {
    return static_cast<Rank>(index / (weight * radix) * weight + index % weight);
  }
};

/// Calls body(step of digit 1, the last digit) for each round.
template <typename Body>
void for_each_bruck_round(Rank ranks, std::int64_t radix, Body body) {
  const std::int64_t last = ranks - 1;
  for (std::int64_t weight = 1; weight <= last; weight *= radix) {
    const std::int64_t digits = std::min(radix - 1, last / weight);
    body(BruckStep{ranks, static_cast<Rank>(radix), weight, 1}, static_cast<Rank>(digits));
  }
}

/// Calls put(step) and take(step) for the messages of a round, `ahead` puts before the first take.
template <typename Put, typename Take>
void do_bruck_round(BruckStep step, Rank digits, Rank ahead, Put put, Take take) {
  for (Rank digit = 1; digit < digits + ahead; ++digit) {
    step.digit = digit;
    if (digit <= digits) put(step);
    step.digit = digit - ahead + 1;
    if (digit >= ahead) take(step);
  }
}

/// Of the steps in their order: the number of the last one that moves the block of this index, or
/// -1. There are radix - 1 in each round but the last one.
inline std::ptrdiff_t last_bruck_step(Rank radix, std::int64_t index) {
  std::ptrdiff_t step = -1;
  std::ptrdiff_t round = 0;
  for (; index > 0; index /= radix, ++round) {
    const auto digit = static_cast<std::ptrdiff_t>(index % radix);
    if (digit > 0) step = round * (radix - 1) + digit - 1;
  }
  return step;
}

/// Which way blocks go: to higher ranks, or to lower ones.
enum class Towards : std::uint8_t { kHigher, kLower };

class Bruck {
 public:
  Bruck(const Call& call, Builder& b, Towards towards = Towards::kHigher)
      : call_(call),
        b_(b),
        towards_(towards),
        block_(call.shared.block_bytes()),
        lists_(call, b, std::min(longest(), call.segment_bytes())) {}

  /// Calls body(step) for all messages of a rank, in their order.
  template <typename Body>
  void for_each_step(Body body) const {
    for_each_round([&](const BruckStep& first, Rank digits) {
      for (Rank digit = 1; digit <= digits; ++digit) body(with(first, digit));
    });
  }
  /// Bytes of the longest message.
  [[nodiscard]] std::int64_t longest() const {
    Rank count = 0;
    for_each_step([&](const BruckStep& step) { count = std::max(count, step.count()); });
    return block_ * count;
  }
  [[nodiscard]] std::int64_t bytes(const BruckStep& step) const { return block_ * step.count(); }

  /// Block `part` of a buffer with one per rank, and all of them.
  [[nodiscard]] Range block(std::int64_t part) const { return {part * block_, block_}; }
  [[nodiscard]] Range all() const { return block(0).sub({0, call_.shared.ranks * block_}); }
  /// The block for or from the rank so many after this one, around the team.
  [[nodiscard]] Range block_after(std::int64_t ranks) const {
    return block(wrap(call_.rank + ranks, call_.shared.ranks));
  }
  [[nodiscard]] Range own() const { return block(call_.rank); }

  /// The step's blocks where place(step, index) says.
  template <typename Place>
  [[nodiscard]] Pieces pieces(const BruckStep& step, Place place) const {
    Pieces pieces = lists_.pieces();
    step.for_each_run([&](Rank first, Rank last) {
      for (Rank index = first; index < last; ++index) pieces.add(place(step, index));
    });
    return pieces;
  }
  /// dst(index) <- src(index) for the indices first, ..., P - 1.
  template <typename Dst, typename Src>
  void rotate(Rank first, Dst dst, Src src) {
    if (block_ == 0) return;
    BufferList to, from;
    for (Rank index = first; index < call_.shared.ranks; ++index) {
      to.add(dst(index));
      from.add(src(index));
    }
    lists_.copy(to, from);
  }

  /// All steps: source(step, index) is where the block is before its step, target(step) where the
  /// step's blocks belong that come from another rank.
  template <typename Source, typename Target>
  void exchange(Source source, Target target) {
    for_each_round([&](const BruckStep& first, Rank digits) {
      if (bytes(first) > call_.segment_bytes()) {
        for (Rank digit = 1; digit <= digits; ++digit) {
          const BruckStep step = with(first, digit);
          by_segments(step, pieces(step, source), target(step));
        }
        return;
      }
      put_ahead(first, digits, source, [&](const BruckStep& step) {
        lists_.take(writer(step), target(step), Range{0, bytes(step)});
      });
    });
  }
  /// The same, but keep(step, message) has the step's blocks where they are. For messages that are
  /// no longer than a segment.
  template <typename Source, typename Keep>
  void exchange_kept(Source source, Keep keep) {
    for_each_round([&](const BruckStep& first, Rank digits) {
      put_ahead(first, digits, source,
                [&](const BruckStep& step) { keep(step, b_.wait(writer(step), bytes(step))); });
    });
  }

 private:
  // Calls body(step of digit 1, the last digit) for each weight.
  template <typename Body>
  void for_each_round(Body body) const {
    if (block_ > 0) for_each_bruck_round(call_.shared.ranks, call_.params.k, body);
  }
  static BruckStep with(BruckStep step, Rank digit) {
    step.digit = digit;
    return step;
  }
  // The rank that this one's message goes to, and the one whose message comes.
  [[nodiscard]] Rank reader(const BruckStep& step) const {
    const std::int64_t up = towards_ == Towards::kHigher ? step.distance() : -step.distance();
    return wrap(call_.rank + up, call_.shared.ranks);
  }
  [[nodiscard]] Rank writer(const BruckStep& step) const {
    const std::int64_t down = towards_ == Towards::kHigher ? -step.distance() : step.distance();
    return wrap(call_.rank + down, call_.shared.ranks);
  }

  void by_segments(const BruckStep& step, const Pieces& out, const Pieces& in) {
    std::vector<std::int64_t> breaks = out.breaks();
    breaks.insert(breaks.end(), in.breaks().begin(), in.breaks().end());
    segments_around(b_, out.length(), call_.segment_bytes(), std::move(breaks), [&](Range s) {
      lists_.put(reader(step), out, s);
      lists_.take(writer(step), in, s);
    });
  }

  template <typename Source, typename Take>
  void put_ahead(const BruckStep& first, Rank digits, Source source, Take take) {
    const bool is_short = bytes(first) <= call_.limits.inline_bytes;
    const Rank ahead = is_short ? digits : std::min<Rank>(digits, call_.limits.large_slots);
    const auto put = [&](const BruckStep& step) {
      lists_.put(reader(step), pieces(step, source), Range{0, bytes(step)});
    };
    do_bruck_round(first, digits, ahead, put, take);
  }

  const Call& call_;
  Builder& b_;
  Towards towards_;
  std::int64_t block_;
  Lists lists_;
};

}  // namespace carillon
