// SPDX-License-Identifier: Apache-2.0
//
// Hands out ranges of an address space that it never touches: first fit, neighbours merged.
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
    for (auto [offset, size] : free_) {
      const std::uint64_t start = (offset + alignment - 1) / alignment * alignment;
      if (start + bytes > offset + size) continue;
      free_.erase(offset);
      if (start > offset) free_[offset] = start - offset;
      if (offset + size > start + bytes) free_[start + bytes] = offset + size - start - bytes;
      used_[start] = bytes;
      return start;
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
  std::map<std::uint64_t, std::uint64_t> free_, used_;  // offset -> bytes
};

}  // namespace carillon
