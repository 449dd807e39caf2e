// SPDX-License-Identifier: Apache-2.0
//
// Bytes that differ for each salt, and from place to place.
#pragma once

#include <cstddef>

namespace known_bytes {

inline unsigned char value_at(std::size_t i, int salt) {
  return static_cast<unsigned char>(i * 131 + static_cast<std::size_t>(salt) * 17 + i / 4096);
}
inline void fill(void* memory, std::size_t bytes, int salt) {
  auto* const data = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = value_at(i, salt);
}
inline bool holds(const void* memory, std::size_t bytes, int salt) {
  const auto* const data = static_cast<const unsigned char*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data[i] != value_at(i, salt)) return false;
  }
  return true;
}

}  // namespace known_bytes
