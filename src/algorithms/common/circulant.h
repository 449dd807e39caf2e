// SPDX-License-Identifier: Apache-2.0
//
// Reduce-scatter and allgather over the same distances around the ring, in ceil(log2 P) rounds for
// any P. Of w blocks a rank still has to pass on the later half: those of the ranks h, ..., w - 1
// after it, h = ceil(w / 2), go to the rank h after it, which reduces them into the first w - h it
// keeps. The allgather goes the same way back.
//
//   5 ranks, blocks a b c d e; a: partial results of block a. What a rank still has:
//            0       1       2       3       4
//   start    abcde   bcdea   cdeab   deabc   eabcd
//   h = 3    abc     bcd     cde     dea     eab      de of 0 to 3, ea of 1 to 4, ...
//   h = 2    ab      bc      cd      de      ea       c of 0 to 2, d of 1 to 3, ...
//   h = 1    a       b       c       d       e
//
// Source: Bernaschi, Iannello, Lauria, "Efficient implementation of reduce-scatter in MPI", 2003;
// J. L. Traff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms", 2024.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "algorithms/common/blocks.h"
#include "algorithms/common/segments.h"
#include "algorithms/common/vrank.h"

namespace carillon {

/// The operator must commute.
class Circulant {
 public:
  using Place = std::function<Buffer(Range)>;

  /// Block r of `blocks` is that of rank r. `sum(range)` names the memory of a range of all blocks
  /// in which partial results gather.
  Circulant(const Call& call, Builder& b, const Blocks& blocks, Place sum)
      : call_(call), b_(b), ranks_(call.shared.ranks), blocks_(blocks), sum_(std::move(sum)) {
    for (Rank width = ranks_; width > 1; width = half(width)) widths_.push_back(width);
  }

  /// From the input to this rank's own block, in `result(range)`.
  void reduce_scatter(const Place& result) {
    const Place input = [this](Range range) { return b_.input(range); };
    for (const Rank width : widths_) {
      const Rank kept = half(width), given = width - kept;
      const bool first = width == ranks_;
      Pieces out(Pieces::Touching::kOne), left(Pieces::Touching::kOne), in(Pieces::Touching::kOne);
      // The first round reduces half of the blocks, and gives away all others but one at most.
      const Rank reduced = first ? kept : std::clamp(ranks_ / 2, kept, width);
      add(&out, kept, reduced, sum_);
      add(&out, reduced, width, input);
      add(&left, 0, given, first ? input : sum_);
      add(&in, 0, given, kept == 1 ? result : sum_);
      exchange_with(kept, -kept, out, in,
                    [&](const Message& m, Range s) { reduce(in.slice(s), left.slice(s), m); });
    }
  }

  /// From this rank's own block in sum(its range) to all of them there.
  void allgather() {
    for (auto width = widths_.rbegin(); width != widths_.rend(); ++width) {
      const Rank have = half(*width);
      Pieces out(Pieces::Touching::kOne), in(Pieces::Touching::kOne);
      add(&out, 0, *width - have, sum_);
      add(&in, have, *width, sum_);
      exchange_with(-have, have, out, in, [&](const Message& m, Range s) {
        b_.copy(in.slice(s), b_.slot(m, Range{0, s.length}));
      });
    }
  }

 private:
  static Rank half(Rank width) { return width - width / 2; }
  // The blocks of the ranks first, ..., last - 1 after this one, around the ring.
  void add(Pieces* pieces, Rank first, Rank last, const Place& place) const {
    const Rank end = ranks_ - call_.rank;  // so many after this one comes rank 0
    if (first < std::min(last, end)) {
      pieces->add(place(blocks_.span(call_.rank + first, call_.rank + std::min(last, end))));
    }
    if (std::max(first, end) < last) {
      pieces->add(place(blocks_.span(std::max(first, end) - end, last - end)));
    }
  }
  template <typename Take>
  void exchange_with(Rank to, Rank from, const Pieces& out, const Pieces& in, Take take) {
    const Rank reader = wrap(std::int64_t{call_.rank} + to, ranks_);
    const Rank writer = wrap(std::int64_t{call_.rank} + from, ranks_);
    exchange_around(
        b_, out, in, call_.segment_bytes(), [&](Range s) { b_.put(reader, out.slice(s)); },
        [&](Range s) { take(b_.wait(writer, s.length), s); });
  }
  // Pieces that break at the same places, one by one.
  void reduce(const BufferList& dst, const BufferList& left, const Message& m) {
    std::int64_t done = 0;
    for (std::size_t i = 0; i < dst.items().size(); ++i) {
      const std::int64_t length = dst.items()[i].range.length;
      b_.reduce(dst.items()[i], left.items()[i], b_.slot(m, Range{done, length}));
      done += length;
    }
  }

  const Call& call_;
  Builder& b_;
  Rank ranks_;
  Blocks blocks_;
  Place sum_;
  std::vector<Rank> widths_;
};

}  // namespace carillon
