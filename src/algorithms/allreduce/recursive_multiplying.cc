// SPDX-License-Identifier: Apache-2.0
//
// allreduce.recursive_multiplying: the ranks are k parts that follow one another, each of which is
// k parts again, and so on down to single ranks. From the smallest parts upwards, ranks in the same
// place of the parts of one group exchange partial results. Parts differ by one rank at most; where
// some have one more, that last rank gets what the smaller parts have from one of their ranks, and
// nobody needs its own. So no team is folded, and all have the same sum: that of the first part,
// with the second one's on its right, and so on.
//
// Source: Ruefenacht, Bull, Booth, "Generalisation of recursive doubling for AllReduce: now with
// simulation", Parallel Computing 69, 2017; here with parts that need not be equal.
//
// 5 ranks, k = 2, parts 0 1 2 | 3 4 and 0 1 | 2 (01 stands for x0 (op) x1):
//            0       1       2       3       4
//   start    0       1       2       3       4
//   step 0   01      01      2       34      34
//   step 1   012     012     012     34      34      2 has the sum 01 from 0
//   step 2   01234   01234   01234   01234   01234   2 has 34 from 3
//
// Cost: ceil(log_k P) (alpha + (k-1) (n beta + n gamma)); a rank may put one message more in a
// step.
// Restrictions: none. Parameters: k, of longer messages than a cache line at most one more than a
// rank is guaranteed in flight; segment.
#include <algorithm>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/common/blocks.h"
#include "algorithms/common/order.h"

namespace carillon {
namespace {

// The parts of a group of ranks that follow one another, and what one of them does.
class Parts {
 public:
  Parts(Rank first, Rank size, Rank most, Rank rank)
      : first_(first), count_(std::min(size, most)), sizes_(size, 1, count_) {
    while (rank >= end(own_)) ++own_;
    place_ = rank - start(own_);
  }

  [[nodiscard]] Rank count() const { return count_; }
  [[nodiscard]] Rank own() const { return own_; }
  [[nodiscard]] Rank start(Rank part) const {
    return first_ + static_cast<Rank>(sizes_[part].offset);
  }
  [[nodiscard]] Rank size(Rank part) const { return static_cast<Rank>(sizes_[part].length); }

  /// Whose partial result of another part this rank gets.
  [[nodiscard]] Rank source(Rank part) const {
    return start(part) + (place_ < size(part) ? place_ : donor(own_, size(part)));
  }
  /// Who gets this rank's: first those in its place, from the part after its own on.
  [[nodiscard]] std::vector<Rank> readers() const {
    std::vector<Rank> list;
    for (Rank step = 1; step < count_; ++step) {
      const Rank part = (own_ + step) % count_;
      if (place_ < size(part)) list.push_back(start(part) + place_);
    }
    for (Rank part = 0; part < count_; ++part) {
      const bool is_larger = size(part) > size(own_);
      if (is_larger && donor(part, size(own_)) == place_) list.push_back(end(part) - 1);
    }
    return list;
  }

 private:
  [[nodiscard]] Rank end(Rank part) const { return start(part) + size(part); }
  // The place of who serves the last rank of a larger part. With two parts no rank is it twice: it
  // is the first of the second one, and below the first of first ones.
  [[nodiscard]] static Rank donor(Rank larger, Rank size) { return larger % size; }

  Rank first_, count_;
  Blocks sizes_;
  Rank own_ = 0, place_ = 0;
};

// The groups that this rank is in, from the smallest one on.
std::vector<Parts> groups_of(Rank rank, Rank ranks, Rank most) {
  std::vector<Parts> list;
  for (Rank first = 0, size = ranks; size > 1;) {
    list.emplace_back(first, size, most, rank);
    first = list.back().start(list.back().own());
    size = list.back().size(list.back().own());
  }
  std::reverse(list.begin(), list.end());
  return list;
}

}  // namespace

void emit_allreduce_recursive_multiplying(const Call& call, Builder& b) {
  const std::int64_t bytes = call.shared.block_bytes(), segment = call.segment_bytes();
  const bool is_short = std::min(bytes, segment) <= call.limits.inline_bytes;
  const Rank most = is_short ? call.params.k : std::min(call.params.k, call.limits.large_slots + 1);
  const std::vector<Parts> groups = groups_of(call.rank, call.shared.ranks, most);
  // What is left of a rank's own part of three and more, while its own result is in the output.
  const bool has_prefix =
      std::any_of(groups.begin(), groups.end(), [](const Parts& each) { return each.own() >= 2; });
  const Range prefix = b.allocate_scratch(has_prefix ? std::min(bytes, segment) : 0);
  b.segments(bytes, segment, [&](Range s) {
    Buffer sum = b.input(s);
    for (const Parts& parts : groups) {
      for (const Rank reader : parts.readers()) b.put(reader, sum);
      const Buffer before = has_prefix ? b.scratch({prefix.offset, s.length}) : b.output(s);
      reduce_in_rank_order(b, parts.count(), parts.own(), b.output(s), before, [&](Rank part) {
        if (part == parts.own()) return sum;
        const Message m = b.wait(parts.source(part), s.length);
        return b.slot(m, Range{0, s.length});
      });
      sum = b.output(s);
    }
  });
}

}  // namespace carillon
