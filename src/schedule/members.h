// SPDX-License-Identifier: Apache-2.0
//
// Who is in a group of a call's ranks: a view, so that a rank can enter a group of many without
// going through them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/nodes.h"

namespace carillon {

/// A group's ranks in its order, as ranks of the call around it. What they are listed in must last
/// as long as this is used.
class Members {
 public:
  Members(std::span<const Rank> list) : list_(list.data()), size_(static_cast<Rank>(list.size())) {}
  Members(const std::vector<Rank>& list) : Members(std::span(list)) {}
  Members(std::vector<Rank>&& list) = delete;
  /// Ranks 0, ..., ranks - 1.
  static Members all(Rank ranks) {
    Members members{std::span<const Rank>()};
    members.size_ = ranks;
    return members;
  }
  /// The same with `rank` in that place.
  [[nodiscard]] Members with(Rank place, Rank rank) const {
    Members other = *this;
    other.place_ = place;
    other.in_place_ = rank;
    return other;
  }

  [[nodiscard]] Rank size() const { return size_; }
  [[nodiscard]] Rank operator[](Rank place) const {
    if (place == place_) return in_place_;
    return list_ == nullptr ? place : list_[place];
  }

 private:
  const Rank* list_;  // null: each place's rank is its number
  Rank size_;
  Rank place_ = -1, in_place_ = -1;
};

}  // namespace carillon
