// SPDX-License-Identifier: Apache-2.0
//
// Numbers that look random, and are the same in every run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpi_test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {  // splitmix64
    state_ += UINT64_C(0x9E3779B97F4A7C15);
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
  }
  /// 0 to n - 1.
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  int between(int least, int most) { return least + below(most - least + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(std::size(list))))];
  }

 private:
  std::uint64_t state_;
};

/// A number that is all ranks' for these two.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t one, std::uint64_t other = 0) {
  Random first(seed ^ (one * UINT64_C(0xD1342543DE82EF95)));
  return Random(first.next() ^ (other * UINT64_C(0xAF251AF3B0F025B5))).next();
}

}  // namespace mpi_test
