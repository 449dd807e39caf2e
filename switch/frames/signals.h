// SPDX-License-Identifier: Apache-2.0
//
// Bytes of the signals of modules that Verilator made into classes: numbers, or arrays of words if
// they have more than 64 bits. Which of them a switch's signals are depends on how many ports it
// has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace carillon::rtl {

template <class Signal>
std::uint8_t byte_of(const Signal& signal, std::size_t at) {
  if constexpr (std::is_integral_v<Signal>) {
    return static_cast<std::uint8_t>(signal >> (8 * at));
  } else {
    return static_cast<std::uint8_t>(signal[at / 4] >> (8 * (at % 4)));
  }
}

template <class Signal>
void set_byte(Signal& signal, std::size_t at, std::uint8_t value) {
  const auto put = [value]<class Word>(Word& word, std::size_t shift) {
    const auto there = static_cast<std::uint64_t>(word) & ~(std::uint64_t{0xff} << shift);
    word = static_cast<Word>(there | std::uint64_t{value} << shift);
  };
  if constexpr (std::is_integral_v<Signal>) {
    put(signal, 8 * at);
  } else {
    put(signal[at / 4], 8 * (at % 4));
  }
}

}  // namespace carillon::rtl
