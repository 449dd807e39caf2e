// SPDX-License-Identifier: Apache-2.0
//
// How long the servlet lets what comes over the network gather before it looks. Each look takes a
// computation some 15 us of its core; what comes in the meantime waits, and so do those who wait
// for what this rank says of it. So a nap is a small share of the time that what is in flight has
// taken already, and no longer than a few messages need to come.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carillon {

class NapLength {
 public:
  static constexpr int kLeastUs = 150;
  static constexpr int kMostUs = 1000;

  /// Of the next nap. Since `in_flight_us` nothing has begun or ended; so many completions of
  /// the network's have been seen in all.
  int next_us(std::int64_t in_flight_us, std::uint64_t completions) {
    const std::uint64_t came = completions - completions_;
    completions_ = completions;
    if (came > kMany) {
      us_ = std::max(kLeastUs, us_ / 2);
    } else if (came <= kFew) {
      us_ = std::min(kMostUs, us_ + us_ / 4);
    }
    return static_cast<int>(std::clamp<std::int64_t>(in_flight_us / kShare, kLeastUs, us_));
  }

 private:
  static constexpr int kShare = 16;
  // A message that is sent and one that comes, and what is said of both, are four; eight messages
  // may be under way to a rank before it has to say something (shm::kWindow).
  static constexpr std::uint64_t kFew = 4, kMany = 8;
  int us_ = kLeastUs;
  std::uint64_t completions_ = 0;
};

}  // namespace carillon
