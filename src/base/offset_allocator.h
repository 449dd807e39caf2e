// SPDX-License-Identifier: Apache-2.0
//
// Hands out ranges of an address space that it never touches: first fit, or the last range that
// fits; neighbours merged.
// For slow paths (team areas, crl_alloc). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace carillon {

class OffsetAllocator {
 public:
  OffsetAllocator(std::uint64_t first, std::uint64_t bytes) {
    if (bytes > 0) free_[first] = bytes;
  }

  /// Offset of `bytes` free bytes, a multiple of the power of two `alignment`.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    for (auto range = free_.begin(); range != free_.end(); ++range) {
      const auto& [offset, size] = *range;
      const std::uint64_t start = (offset + alignment - 1) / alignment * alignment;
      if (start + bytes <= offset + size) return take(range, start, bytes);
    }
    return std::nullopt;
  }
  /// The same, as far back as there is room.
  std::optional<std::uint64_t> allocate_last(std::uint64_t bytes, std::uint64_t alignment) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    for (auto range = free_.end(); range != free_.begin();) {
      const auto& [offset, size] = *--range;
      if (size < bytes) continue;
      const std::uint64_t start = (offset + size - bytes) / alignment * alignment;
      if (start >= offset) return take(range, start, bytes);
    }
    return std::nullopt;
  }

  /// Bytes of the allocation at offset; 0 if there is none.
  [[nodiscard]] std::uint64_t size_of(std::uint64_t offset) const {
    const auto found = used_.find(offset);
    return found == used_.end() ? 0 : found->second;
  }

  /// Needs no memory.
  void release(std::uint64_t offset) {
    auto range = used_.extract(offset);
    if (range.empty()) return;
    const std::uint64_t start = offset;
    std::uint64_t& bytes = range.mapped();
    auto next = free_.lower_bound(start);
    if (next != free_.end() && next->first == start + bytes) {
      bytes += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == start) {
        before->second += bytes;
        return;
      }
    }
    free_.insert(std::move(range));
  }

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // offset -> bytes

  // Bytes from start on, of a free range.
  std::uint64_t take(Ranges::iterator range, std::uint64_t start, std::uint64_t bytes) {
    const auto [offset, size] = *range;
    // All that needs memory comes first: if there is none, nothing has changed.
    Ranges used = {{start, bytes}}, rest;
    if (offset + size > start + bytes) rest[start + bytes] = offset + size - start - bytes;
    if (start > offset) {
      range->second = start - offset;
    } else {
      free_.erase(range);
    }
    free_.merge(rest);
    used_.merge(used);
    return start;
  }

  Ranges free_, used_;
};

}  // namespace carillon
