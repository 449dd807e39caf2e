// SPDX-License-Identifier: Apache-2.0
//
// The calendar: events to come, by windows of time. What happens in a window cannot cause anything
// on another node in the same window, if that is no longer than the network's latency: so the
// events of a window are taken together and sorted by node, which goes through the ranks' memory
// from end to end, instead of jumping about in it for each event in order of time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/huge.h"

namespace carillon::sim {

/// Lists of events in pieces of a few KiB, so that many windows with few events each, and few with
/// many, both take little memory.
template <typename Event>
class EventPool {
 public:
  struct Piece {
    static constexpr std::size_t kEvents = 4064 / sizeof(Event);
    Piece* next = nullptr;
    std::size_t count = 0;
    std::array<Event, kEvents> events;
  };

  void push(Piece** list, const Event& event) {
    if (*list == nullptr || (*list)->count == Piece::kEvents) {
      Piece* const piece = take();
      piece->next = *list;
      piece->count = 0;
      *list = piece;
    }
    (*list)->events[(*list)->count++] = event;
  }
  void drain(Piece** list, HugeVector<Event>* out) {
    while (*list != nullptr) {
      Piece* const piece = *list;
      out->insert(out->end(), piece->events.begin(), piece->events.begin() + piece->count);
      *list = piece->next;
      piece->next = free_;
      free_ = piece;
    }
  }

 private:
  Piece* take() {
    if (free_ == nullptr) {
      blocks_.push_back(std::make_unique_for_overwrite<Piece[]>(kBlock));
      for (std::size_t i = 0; i < kBlock; ++i) {
        blocks_.back()[i].next = free_;
        free_ = &blocks_.back()[i];
      }
    }
    Piece* const piece = free_;
    free_ = piece->next;
    return piece;
  }

  static constexpr std::size_t kBlock = 16;
  std::vector<std::unique_ptr<Piece[]>> blocks_;
  Piece* free_ = nullptr;
};

template <typename Event>
class Calendar {
 public:
  /// Windows of 2^shift ps.
  explicit Calendar(std::int32_t shift) : shift_(shift), near_(kNear) {}

  /// Not before the window that was taken last.
  void push(const Event& event) {
    const std::int64_t window = event.time >> shift_;
    if (window - base_ >= kNear) {
      pool_.push(&far_[window], event);
      return;
    }
    const auto place = static_cast<std::size_t>(window) & (kNear - 1);
    pool_.push(&near_[place], event);
    used_[place / 64] |= std::uint64_t{1} << place % 64;
  }

  /// The events of the next window that has any, in no particular order; false: there is none.
  bool take(HugeVector<Event>* events) {
    events->clear();
    const std::int64_t ahead = next_near();
    if (ahead < kNear) {
      base_ += ahead;
    } else {
      if (far_.empty()) return false;
      base_ = far_.begin()->first;
    }
    bring_near();
    const auto place = static_cast<std::size_t>(base_) & (kNear - 1);
    pool_.drain(&near_[place], events);
    used_[place / 64] &= ~(std::uint64_t{1} << place % 64);
    return true;
  }
  /// When the window that was taken last ends.
  [[nodiscard]] std::int64_t window_end() const { return (base_ + 1) << shift_; }

 private:
  using Piece = typename EventPool<Event>::Piece;
  static constexpr std::int64_t kNear = 1024;

  // Windows from base_ to the next one near that has events; kNear: none has.
  [[nodiscard]] std::int64_t next_near() const {
    for (std::int64_t ahead = 0; ahead < kNear;) {
      const auto place = static_cast<std::size_t>(base_ + ahead) & (kNear - 1);
      const std::uint64_t word = used_[place / 64] >> place % 64;
      if (word != 0) return std::min<std::int64_t>(ahead + std::countr_zero(word), kNear);
      ahead += 64 - static_cast<std::int64_t>(place % 64);
    }
    return kNear;
  }
  void bring_near() {
    while (!far_.empty() && far_.begin()->first - base_ < kNear) {
      const auto place = static_cast<std::size_t>(far_.begin()->first) & (kNear - 1);
      Piece* list = far_.begin()->second;
      while (list != nullptr && list->next != nullptr) list = list->next;
      if (list != nullptr) list->next = near_[place];
      near_[place] = far_.begin()->second;
      used_[place / 64] |= std::uint64_t{1} << place % 64;
      far_.erase(far_.begin());
    }
  }

  std::int32_t shift_;
  std::int64_t base_ = 0;
  EventPool<Event> pool_;
  std::vector<Piece*> near_;
  std::array<std::uint64_t, kNear / 64> used_{};
  std::map<std::int64_t, Piece*> far_;
};

/// Sorts by `key`, at most `max_key`, and leaves what is equal in the order in which it was.
template <typename Event, typename Key>
void sort_by(HugeVector<Event>* events, HugeVector<Event>* spare, std::uint32_t max_key, Key key) {
  constexpr std::size_t kFew = 64;
  if (events->size() < kFew) {
    std::stable_sort(events->begin(), events->end(),
                     [&](const Event& a, const Event& b) { return key(a) < key(b); });
    return;
  }
  constexpr std::int32_t kBits = 11;
  constexpr std::uint32_t kMask = (1U << kBits) - 1;
  spare->resize(events->size());
  for (std::int32_t shift = 0; shift < 32 && max_key >> shift != 0; shift += kBits) {
    std::array<std::uint32_t, kMask + 1> start{};
    for (const Event& event : *events) ++start[key(event) >> shift & kMask];
    std::uint32_t sum = 0;
    for (std::uint32_t& count : start) sum += std::exchange(count, sum);
    for (const Event& event : *events) (*spare)[start[key(event) >> shift & kMask]++] = event;
    events->swap(*spare);
  }
}

}  // namespace carillon::sim
