// SPDX-License-Identifier: Apache-2.0
//
// IntervalMap: byte ranges to values, for the verifier. A sorted vector of disjoint segments;
// neighbours with equal values are one segment, so that memory written in many small pieces costs
// no more than it says.
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
    auto low = std::partition_point(segments_.begin(), segments_.end(),
                                    [&](const Segment& s) { return s.end < begin; });
    const auto high = std::partition_point(low, segments_.end(),
                                           [&](const Segment& s) { return s.begin <= end; });
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
    auto it = std::partition_point(segments_.begin(), segments_.end(),
                                   [&](const Segment& s) { return s.end <= begin; });
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
};

}  // namespace carillon
