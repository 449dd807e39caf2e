// SPDX-License-Identifier: Apache-2.0
//
// How busy the machine is, all programs on it together: a virtual cluster whose cores are busy with
// its wires says nothing about wires.
#pragma once

#include <chrono>
#include <cstdint>

namespace carillon::cli {

/// Since its construction.
class Busy {
 public:
  /// Of all cores, 0 to 100.
  [[nodiscard]] double percent() const;
  [[nodiscard]] double seconds() const;

 private:
  struct Ticks {
    std::int64_t idle = 0, all = 0;
  };
  static Ticks now();
  Ticks ticks_ = now();
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace carillon::cli
