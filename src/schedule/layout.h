// SPDX-License-Identifier: Apache-2.0
//
// Where a rank's spaces really lie: in place, input and output are the same memory.
#pragma once

#include "schedule/machine.h"

namespace carillon {

/// Memory that does not overlap. In place, the input lies in kOutput.
enum class Region : std::uint8_t { kInput, kOutput, kScratch, kCounts };
inline constexpr int kRegions = 4;

struct Place {
  Region region = Region::kInput;
  std::int64_t offset = 0;  ///< may be negative in kOutput (scatter in place)
};

class Layout {
 public:
  Layout(const Shared& shared, const Local& local, Rank rank)
      : in_place_(local.in_place),
        shift_(in_place_shift(shared, rank)),
        input_bytes_(carillon::input_bytes(shared, local, rank)),
        output_bytes_(carillon::output_bytes(shared, local, rank)) {}

  /// The space must not be slot.
  [[nodiscard]] Place place(Space space, std::int64_t offset) const {
    if (space == Space::kScratch) return {Region::kScratch, offset};
    if (space == Space::kOutput) return {Region::kOutput, offset};
    if (space == Space::kCounts) return {Region::kCounts, offset};
    if (in_place_) return {Region::kOutput, offset + shift_};
    return {Region::kInput, offset};
  }
  [[nodiscard]] std::int64_t input_bytes() const { return input_bytes_; }
  [[nodiscard]] std::int64_t output_bytes() const { return output_bytes_; }

 private:
  bool in_place_;
  std::int64_t shift_;
  std::int64_t input_bytes_;
  std::int64_t output_bytes_;
};

}  // namespace carillon
