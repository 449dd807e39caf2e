// SPDX-License-Identifier: Apache-2.0
//
// IntervalMap: byte ranges to values, for the verifier. A sorted vector of disjoint segments;
// neighbours with equal values are one segment, so that memory written in many small pieces costs
// no more than it says. What follows, or is near, what was looked for last is found in a few steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace carillon {

template <typename Value>
class IntervalMap {
 public:
  struct Segment {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    Value value = {};
  };

  /// Sets [begin, end) to the value.
  void assign(std::int64_t begin, std::int64_t end, const Value& value) {
    if (begin >= end) return;
    const auto low = segments_.begin() + static_cast<std::ptrdiff_t>(find(begin));
    auto high = low;  // behind what touches the new segment: few, or gone for good
    while (high != segments_.end() && high->begin <= end) ++high;
    Segment pieces[3];
    std::size_t count = 0;
    Segment middle{begin, end, value};
    if (low != high && low->begin < begin) {
      if (low->value == value) {
        middle.begin = low->begin;
      } else {
        pieces[count++] = {low->begin, begin, low->value};
      }
    }
    const std::size_t at = count++;
    if (low != high && (high - 1)->end > end) {
      const Segment& last = *(high - 1);
      if (last.value == value) {
        middle.end = last.end;
      } else {
        pieces[count++] = {end, last.end, last.value};
      }
    }
    pieces[at] = middle;
    replace(low, high, pieces, count);
  }

  /// Calls visit(begin, end, value) for what is set in [begin, end), in order, cut to it.
  template <typename Visit>
  void each(std::int64_t begin, std::int64_t end, Visit visit) const {
    auto it = segments_.begin() + static_cast<std::ptrdiff_t>(find(begin + 1));
    for (; it != segments_.end() && it->begin < end; ++it) {
      visit(std::max(it->begin, begin), std::min(it->end, end), it->value);
    }
  }

  /// The first byte of [begin, end) that is not set, or end.
  [[nodiscard]] std::int64_t first_gap(std::int64_t begin, std::int64_t end) const {
    each(begin, end, [&](std::int64_t from, std::int64_t to, const Value&) {
      if (from == begin) begin = to;
    });
    return begin;
  }

  void clear() { segments_.clear(); }

 private:
  using Iterator = typename std::vector<Segment>::iterator;

  // The first segment that ends at `end` or behind it.
  [[nodiscard]] std::size_t find(std::int64_t end) const {
    constexpr std::size_t kSteps = 4;
    const auto before = [&](const Segment& s) { return s.end < end; };
    std::size_t first = std::min(last_, segments_.size());
    std::size_t behind = segments_.size();
    if (first > 0 && !before(segments_[first - 1])) {
      behind = first - 1;
      first = 0;
    } else {
      const std::size_t near = std::min(first + kSteps, behind);
      while (first < near && before(segments_[first])) ++first;
      if (first < near) behind = first;
    }
    const auto begin = segments_.begin();
    const auto found = std::partition_point(begin + static_cast<std::ptrdiff_t>(first),
                                            begin + static_cast<std::ptrdiff_t>(behind), before);
    last_ = static_cast<std::size_t>(found - begin);
    return last_;
  }

  void replace(Iterator low, Iterator high, const Segment* pieces, std::size_t count) {
    std::size_t used = 0;
    while (low != high && used < count) *low++ = pieces[used++];
    if (low != high) {
      segments_.erase(low, high);
    } else {
      segments_.insert(low, pieces + used, pieces + count);
    }
  }

  std::vector<Segment> segments_;
  mutable std::size_t last_ = 0;  // what was found last
};

}  // namespace carillon
