// SPDX-License-Identifier: Apache-2.0
//
// StampedMap: a hash map from int64 keys that is emptied in no time and keeps its memory, for what
// is filled and emptied again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace carillon {

template <typename Value>
class StampedMap {
 public:
  /// The key's value, made if there is none. Valid until the next call.
  Value& operator[](std::int64_t key) {
    if (places_.size() < 2 * (size_ + 1)) grow();
    Place& place = find(key);
    if (place.stamp != stamp_) {
      place = {key, stamp_, {}};
      ++size_;
    }
    return place.value;
  }
  void clear() {
    size_ = 0;
    if (++stamp_ != 0) return;
    for (Place& place : places_) place.stamp = 0;  // after 2^32 times
    stamp_ = 1;
  }

 private:
  struct Place {
    std::int64_t key = 0;
    std::uint32_t stamp = 0;  // in use if it is the map's
    Value value{};
  };

  Place& find(std::int64_t key) {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = (static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15U >> 32) & mask;
    while (places_[at].stamp == stamp_ && places_[at].key != key) at = (at + 1) & mask;
    return places_[at];
  }
  void grow() {
    std::vector<Place> old(places_.empty() ? 16 : places_.size() * 2);
    old.swap(places_);
    for (Place& place : old) {
      if (place.stamp == stamp_) find(place.key) = std::move(place);
    }
  }

  std::vector<Place> places_;  // a power of two
  std::size_t size_ = 0;
  std::uint32_t stamp_ = 1;
};

}  // namespace carillon
