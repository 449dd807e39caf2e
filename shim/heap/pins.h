// SPDX-License-Identifier: Apache-2.0
//
// Addresses that somebody else reads or writes at for a while: the block around one of them stays
// where it is though it be freed, until the last of these is taken out. With the heap's lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace carillon::heap {

class Pins {
 public:
  static constexpr int kNone = -1;

  /// Of a child of fork, whose parent's they are.
  void clear() {
    std::fill(pins_.begin(), pins_.begin() + end_, Pin());
    next_ = end_ = 0;
  }
  /// Its number; kNone: there is no room, and the block is as others.
  int add(const std::byte* at, std::uint32_t tag) {
    for (int i = 0; i < kMost; ++i) {
      const int number = (next_ + i) % kMost;
      if (pin(number).at != nullptr) continue;
      pin(number) = {at, tag, 0};
      next_ = number + 1;
      end_ = std::max(end_, number + 1);
      return number;
    }
    return kNone;
  }

  /// The tag of one within the bytes.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::byte* first, std::size_t bytes) const {
    for (int i = 0; i < end_; ++i) {
      if (is_within(pins_[static_cast<std::size_t>(i)], first, bytes)) {
        return pins_[static_cast<std::size_t>(i)].tag;
      }
    }
    return std::nullopt;
  }
  /// The block `number` of these bytes has been freed: it is for the last that is taken out.
  void keep(const std::byte* first, std::size_t bytes, std::uint32_t number) {
    for (int i = 0; i < end_; ++i) {
      if (is_within(pin(i), first, bytes)) pin(i).block = number + 1;
    }
  }
  /// Takes one out. The number of a block that is to be freed now, if any.
  std::optional<std::uint32_t> take_out(int number) {
    if (number < 0 || number >= end_) return std::nullopt;
    const std::uint32_t block = pin(number).block;
    pin(number) = {};
    while (end_ > 0 && pin(end_ - 1).at == nullptr) --end_;
    const bool last = std::none_of(pins_.begin(), pins_.begin() + end_,
                                   [&](const Pin& other) { return other.block == block; });
    return block != 0 && last ? std::optional(block - 1) : std::nullopt;
  }

 private:
  static constexpr int kMost = 4096;
  struct Pin {
    const std::byte* at = nullptr;  // null: it is free
    std::uint32_t tag = 0;
    std::uint32_t block = 0;  // + 1: freed meanwhile
  };
  static bool is_within(const Pin& pin, const std::byte* first, std::size_t bytes) {
    return pin.at >= first && pin.at < first + bytes;
  }
  Pin& pin(int number) { return pins_[static_cast<std::size_t>(number)]; }

  std::array<Pin, kMost> pins_ = {};
  int next_ = 0, end_ = 0;  // behind the last that is not free
};

}  // namespace carillon::heap
