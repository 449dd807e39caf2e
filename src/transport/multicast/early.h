// SPDX-License-Identifier: Apache-2.0
//
// Packets that have come before somebody wanted them: a bounded number, of all streams together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace carillon::multicast {

class EarlyPackets {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Entry {
    std::uint64_t sequence = 0;
    std::uint64_t message = 0;
    std::uint64_t message_bytes = 0;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t next = kNone;  ///< in a list of its owner's, or of free ones
  };

  EarlyPackets(std::uint32_t count, std::uint32_t payload_bytes)
      : payload_bytes_(payload_bytes),
        entries_(count),
        memory_(static_cast<std::size_t>(count) * payload_bytes) {
    for (std::uint32_t i = count; i > 0; --i) release(i - 1);
  }

  [[nodiscard]] bool full() const { return free_ == kNone; }
  /// kNone if it is full.
  std::uint32_t keep(const Entry& entry, std::span<const std::byte> payload) {
    const std::uint32_t index = free_;
    if (index == kNone) return kNone;
    free_ = entries_[index].next;
    entries_[index] = entry;
    if (!payload.empty()) std::memcpy(place(index), payload.data(), payload.size());
    return index;
  }
  [[nodiscard]] Entry& at(std::uint32_t index) { return entries_[index]; }
  [[nodiscard]] std::span<const std::byte> payload(std::uint32_t index) {
    return {place(index), entries_[index].bytes};
  }
  void release(std::uint32_t index) {
    entries_[index].next = free_;
    free_ = index;
  }

 private:
  [[nodiscard]] std::byte* place(std::uint32_t index) {
    return memory_.data() + static_cast<std::size_t>(index) * payload_bytes_;
  }
  std::uint32_t payload_bytes_;
  std::uint32_t free_ = kNone;
  std::vector<Entry> entries_;
  std::vector<std::byte> memory_;
};

}  // namespace carillon::multicast
