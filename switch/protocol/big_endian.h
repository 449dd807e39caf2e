// SPDX-License-Identifier: Apache-2.0
//
// Numbers as they lie in the records of the switch protocol.
#pragma once

#include <cstddef>

namespace carillon::aggregate {

template <typename Number>
void store_big(std::byte* to, Number number) {
  for (std::size_t i = sizeof(Number); i-- > 0;) {
    to[i] = static_cast<std::byte>(number & 0xff);
    if constexpr (sizeof(Number) > 1) number = static_cast<Number>(number >> 8);
  }
}

template <typename Number>
Number load_big(const std::byte* from) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    if constexpr (sizeof(Number) > 1) number = static_cast<Number>(number << 8);
    number = static_cast<Number>(number | std::to_integer<Number>(from[i]));
  }
  return number;
}

}  // namespace carillon::aggregate
