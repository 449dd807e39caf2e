// SPDX-License-Identifier: Apache-2.0
//
// The calendar: events to come, by windows of time. What happens in a window cannot cause anything
// on another node in the same window, if that is no longer than the network's latency: so the
// events of a window are taken together and sorted by node, which goes through the ranks' memory
// from end to end, instead of jumping about in it for each event in order of time. They are sorted
// by parts that stay in the cache, each in memory that the next one uses again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
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

  struct List {
    Piece* first = nullptr;
    std::size_t size = 0;
  };

  void push(List* list, const Event& event) {
    if (list->first == nullptr || list->first->count == Piece::kEvents) {
      Piece* const piece = take();
      piece->next = list->first;
      piece->count = 0;
      list->first = piece;
    }
    list->first->events[list->first->count++] = event;
    ++list->size;
  }
  /// Calls body(events) for all of them by pieces, in no particular order, and empties the list: a
  /// piece can be used again once body has had it.
  template <typename Body>
  void drain(List* list, Body body) {
    while (list->first != nullptr) {
      Piece* const piece = list->first;
      body(std::span<const Event>(piece->events.data(), piece->count));
      list->first = piece->next;
      piece->next = free_;
      free_ = piece;
    }
    list->size = 0;
  }
  /// To the end of the other list.
  static void append(List* list, const List& more) {
    Piece** end = &list->first;
    while (*end != nullptr) end = &(*end)->next;
    *end = more.first;
    list->size += more.size;
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

/// Sorts by `key`, at most `max_key`.
template <typename Event, typename Key>
void sort_by(HugeVector<Event>* events, HugeVector<Event>* spare, std::uint32_t max_key, Key key) {
  constexpr std::size_t kFew = 64;
  if (events->size() < kFew) {
    std::sort(events->begin(), events->end(),
              [&](const Event& a, const Event& b) { return key(a) < key(b); });
    return;
  }
  constexpr std::int32_t kMostBits = 11;
  const auto all_bits = static_cast<std::int32_t>(std::bit_width(max_key));
  const std::int32_t passes = (all_bits + kMostBits - 1) / kMostBits;
  if (passes == 0) return;
  const std::int32_t bits = (all_bits + passes - 1) / passes;
  const std::uint32_t mask = (1U << bits) - 1;
  spare->resize(events->size());
  for (std::int32_t shift = 0; shift < all_bits; shift += bits) {
    std::array<std::uint32_t, 1 << kMostBits> start;
    std::fill_n(start.begin(), mask + 1, 0);
    for (const Event& event : *events) ++start[key(event) >> shift & mask];
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i <= mask; ++i) sum += std::exchange(start[i], sum);
    for (const Event& event : *events) (*spare)[start[key(event) >> shift & mask]++] = event;
    events->swap(*spare);
  }
}

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

  /// Goes on to the next window that has events; false: there is none. All of the one before have
  /// been taken.
  bool next_window() {
    const std::int64_t ahead = next_near();
    if (ahead < kNear) {
      base_ += ahead;
    } else {
      if (far_.empty()) return false;
      base_ = far_.begin()->first;
    }
    bring_near();
    const auto place = static_cast<std::size_t>(base_) & (kNear - 1);
    parts_.assign(1, std::exchange(near_[place], {}));
    used_[place / 64] &= ~(std::uint64_t{1} << place % 64);
    part_ = 0;
    is_split_ = false;
    return true;
  }
  /// The window's next events by their keys, at most `max_key`, in no other order; false: there are
  /// no more.
  template <typename Key>
  bool take(HugeVector<Event>* events, std::uint32_t max_key, Key key) {
    if (!is_split_) split(max_key, key);
    for (; part_ < parts_.size(); ++part_) {
      if (parts_[part_].size == 0) continue;
      events->clear();
      pool_.drain(&parts_[part_], [&](std::span<const Event> some) {
        events->insert(events->end(), some.begin(), some.end());
      });
      const std::uint32_t below = key_bits_ < 32 ? (std::uint32_t{1} << key_bits_) - 1 : UINT32_MAX;
      sort_by(events, &spare_, std::min(below, max_key),
              [&](const Event& event) { return key(event) & below; });
      return true;
    }
    return false;
  }
  /// When the window that was taken last ends.
  [[nodiscard]] std::int64_t window_end() const { return (base_ + 1) << shift_; }

 private:
  using List = typename EventPool<Event>::List;
  static constexpr std::int64_t kNear = 1024;
  static constexpr std::size_t kPartEvents = 4096, kMostParts = 256;

  // The window's events by the first bits of their keys.
  template <typename Key>
  void split(std::uint32_t max_key, Key key) {
    is_split_ = true;
    key_bits_ = static_cast<std::int32_t>(std::bit_width(max_key));
    const std::size_t parts =
        std::bit_floor(std::min(parts_.front().size / kPartEvents + 1, kMostParts));
    const std::int32_t bits =
        std::min(static_cast<std::int32_t>(std::bit_width(parts)) - 1, key_bits_);
    if (bits == 0) return;
    key_bits_ -= bits;
    List all = std::exchange(parts_.front(), {});
    parts_.assign(std::size_t{1} << bits, {});
    pool_.drain(&all, [&](std::span<const Event> some) {
      for (const Event& event : some) pool_.push(&parts_[key(event) >> key_bits_], event);
    });
  }

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
      EventPool<Event>::append(&near_[place], far_.begin()->second);
      used_[place / 64] |= std::uint64_t{1} << place % 64;
      far_.erase(far_.begin());
    }
  }

  std::int32_t shift_;
  std::int64_t base_ = 0;
  EventPool<Event> pool_;
  std::vector<List> near_;
  std::array<std::uint64_t, kNear / 64> used_{};
  std::map<std::int64_t, List> far_;
  // Of the window that was taken last: its events by the bits of their keys above key_bits_.
  std::vector<List> parts_;
  std::size_t part_ = 0;  // that comes next
  bool is_split_ = false;
  std::int32_t key_bits_ = 32;
  HugeVector<Event> spare_;
};
}  // namespace carillon::sim
