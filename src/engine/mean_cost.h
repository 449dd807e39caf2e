// SPDX-License-Identifier: Apache-2.0
//
// What a byte costs that is moved in some way, learned from how long moving some took.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace carillon {

class MeanCost {
 public:
  using Clock = std::chrono::steady_clock;

  void note(Clock::duration took, std::int64_t bytes) {
    const std::int64_t ns = std::min(std::chrono::nanoseconds(took).count(), kLongestNs);
    const std::int64_t now = std::max<std::int64_t>(1, ns * 1000000 / bytes);
    if (seen_ == 0) fs_per_byte_ = now;
    if (now < fs_per_byte_) {
      fs_per_byte_ -= (fs_per_byte_ - now) / (is_known() ? 8 : 4);
    } else {
      // One that was interrupted says little; nor do the first ones of another way than the usual,
      // which find the caches cold.
      fs_per_byte_ += std::min(now - fs_per_byte_, fs_per_byte_ / 2 + 8) / 32;
    }
    seen_ = std::min(seen_ + 1, kEnough);
  }
  /// Not yet, if there were few: the first ones may have been of the wrong kind.
  [[nodiscard]] bool is_known() const { return seen_ == kEnough; }
  /// In femtoseconds; 0: not known.
  [[nodiscard]] std::uint32_t known_fs() const {
    if (!is_known()) return 0;
    return static_cast<std::uint32_t>(std::min<std::int64_t>(fs_per_byte_, UINT32_MAX));
  }

 private:
  static constexpr int kEnough = 16;
  static constexpr std::int64_t kLongestNs = 1000000000;

  std::int64_t fs_per_byte_ = 0;  // a byte takes about 20 ps
  int seen_ = 0;
};

}  // namespace carillon
