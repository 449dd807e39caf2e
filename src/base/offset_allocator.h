// SPDX-License-Identifier: Apache-2.0
//
// Hands out ranges of an address space that it never touches: first fit, or the last range that
// fits; neighbours merged.
// For slow paths (team areas, crl_alloc). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace carillon {

class OffsetAllocator {
 public:
  OffsetAllocator(std::uint64_t first, std::uint64_t bytes) {
    if (bytes > 0) free_[first] = bytes;
  }

  /// Offset of `bytes` free bytes, a multiple of the power of two `alignment`.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes, std::uint64_t alignment) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    for (const auto& [offset, size] : free_) {
      const std::uint64_t start = (offset + alignment - 1) / alignment * alignment;
      if (start + bytes <= offset + size) return take(offset, start, bytes);
    }
    return std::nullopt;
  }
  /// The same, as far back as there is room.
  std::optional<std::uint64_t> allocate_last(std::uint64_t bytes, std::uint64_t alignment) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    for (auto range = free_.rbegin(); range != free_.rend(); ++range) {
      const auto& [offset, size] = *range;
      if (size < bytes) continue;
      const std::uint64_t start = (offset + size - bytes) / alignment * alignment;
      if (start >= offset) return take(offset, start, bytes);
    }
    return std::nullopt;
  }

  /// Bytes of the allocation at offset; 0 if there is none.
  [[nodiscard]] std::uint64_t size_of(std::uint64_t offset) const {
    const auto found = used_.find(offset);
    return found == used_.end() ? 0 : found->second;
  }

  void release(std::uint64_t offset) {
    const auto found = used_.find(offset);
    if (found == used_.end()) return;
    std::uint64_t start = offset;
    std::uint64_t bytes = found->second;
    used_.erase(found);
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
    free_[start] = bytes;
  }

 private:
  // Bytes from start on, of the free range at offset.
  std::uint64_t take(std::uint64_t offset, std::uint64_t start, std::uint64_t bytes) {
    const auto range = free_.find(offset);
    const std::uint64_t end = offset + range->second;
    free_.erase(range);
    if (start > offset) free_[offset] = start - offset;
    if (end > start + bytes) free_[start + bytes] = end - start - bytes;
    used_[start] = bytes;
    return start;
  }

  std::map<std::uint64_t, std::uint64_t> free_, used_;  // offset -> bytes
};

}  // namespace carillon
