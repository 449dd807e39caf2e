// SPDX-License-Identifier: Apache-2.0
//
// One rank's control memory: who has which part of it. Team areas and the like are taken from its
// front, the pair lines of teams from its back.
//
// What is given back is used again for the same, in the same size: members of an earlier team may
// still look at an area's counters, so that these stay in their places.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <vector>

#include "base/offset_allocator.h"
#include "transport/shm/layout.h"

namespace carillon::shm {

/// Where a team's area and pair lines are, from the segment's start.
struct AreaPlace {
  std::uint64_t area = 0;
  std::uint64_t pair_lines = 0;
};

/// Not thread-safe.
class ControlMemory {
 public:
  /// The `bytes` from offset `first` on of the segment at `segment`, which nobody has written yet.
  ControlMemory(std::byte* segment, std::uint64_t first, std::uint64_t bytes)
      : segment_(segment), ranges_(first, bytes) {}

  /// All of it is 0; nothing if there is no room. What has never been used is not touched: no page
  /// of it takes memory before somebody reads or writes there.
  std::optional<AreaPlace> allocate_area(const AreaLayout& layout) {
    const auto area = allocate(layout.bytes(), layout.bytes());
    if (!area) return std::nullopt;
    try {
      if (const auto lines = allocate_lines(layout.pair_bytes())) {
        return AreaPlace{.area = *area, .pair_lines = *lines};
      }
    } catch (...) {
      release(*area, layout.bytes());
      throw;
    }
    release(*area, layout.bytes());
    return std::nullopt;
  }
  void release_area(const AreaPlace& place, const AreaLayout& layout) noexcept {
    release(place.area, layout.bytes());
    keep(spare_lines_, place.pair_lines, layout.pair_bytes());
  }

  /// Of which the first `cleared_bytes` are 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t cleared_bytes) {
    const auto spare = pop(spare_, bytes, cleared_bytes);
    return spare ? spare : ranges_.allocate(bytes, kCacheLine);
  }
  void release(std::uint64_t offset, std::uint64_t bytes) noexcept { keep(spare_, offset, bytes); }

 private:
  using Spare = std::map<std::uint64_t, std::vector<std::uint64_t>>;  // size -> offsets

  std::optional<std::uint64_t> allocate_lines(std::uint64_t bytes) {
    const auto spare = pop(spare_lines_, bytes, bytes);
    return spare ? spare : ranges_.allocate_last(bytes, kCacheLine);
  }

  // If there is no memory to note it in, it is lost.
  static void keep(Spare& spare, std::uint64_t offset, std::uint64_t bytes) noexcept {
    try {
      spare[bytes].push_back(offset);
    } catch (const std::bad_alloc&) {
    }
  }

  std::optional<std::uint64_t> pop(Spare& spare, std::uint64_t bytes,
                                   std::uint64_t cleared_bytes) const {
    const auto found = spare.find(bytes);
    if (found == spare.end() || found->second.empty()) return std::nullopt;
    const std::uint64_t offset = found->second.back();
    found->second.pop_back();
    // Nobody writes here before the members have agreed on the new team; somebody may read.
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(segment_ + offset);
    for (std::uint64_t i = 0; i < cleared_bytes / sizeof *words; ++i) {
      words[i].store(0, std::memory_order_relaxed);
    }
    return offset;
  }

  std::byte* segment_;
  OffsetAllocator ranges_;
  Spare spare_, spare_lines_;
};

}  // namespace carillon::shm
