// SPDX-License-Identifier: Apache-2.0
//
// Operands for the arithmetic of the switch in hardware: pairs that make a float adder do all it
// can.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "switch/protocol/arithmetic.h"
#include "switch/protocol/packet.h"

namespace carillon::rtl {

using aggregate::Op;
using aggregate::Type;

inline constexpr std::array kOps = {Op::kSum, Op::kMin, Op::kMax, Op::kAnd, Op::kOr, Op::kXor};
inline constexpr std::array kTypes = {Type::kInt32, Type::kInt64, Type::kFloat32, Type::kFloat64};

struct Operation {
  Op op;
  Type type;
};

/// All that the switch computes.
inline std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (const Op op : kOps) {
    for (const Type type : kTypes) {
      if (aggregate::is_defined(op, type)) all.push_back({op, type});
    }
  }
  return all;
}

/// As the hardware has it: operation_t of sw_reduce_pkg.
inline std::uint8_t operation_bits(const Operation& operation) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(operation.op) << 2 |
                                   static_cast<unsigned>(operation.type));
}

/// What the environment says, or the default.
inline std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// One lane of the reference: one element of 64 bits, or two of 32.
inline std::uint64_t reference(const Operation& operation, std::uint64_t left,
                               std::uint64_t right) {
  std::array<std::byte, 8> a, b;
  std::memcpy(a.data(), &left, 8);
  std::memcpy(b.data(), &right, 8);
  aggregate::combine(operation.op, operation.type, a.data(), b.data(),
                     8 / aggregate::type_bytes(operation.type));
  std::memcpy(&left, a.data(), 8);
  return left;
}

/// A format of IEEE 754: where its fields are.
struct Format {
  int exponent_bits;
  int fraction_bits;

  std::uint64_t exponent_mask() const { return (std::uint64_t{1} << exponent_bits) - 1; }
  std::uint64_t fraction_mask() const { return (std::uint64_t{1} << fraction_bits) - 1; }
  std::uint64_t make(bool negative, std::uint64_t exponent, std::uint64_t fraction) const {
    return std::uint64_t{negative} << (exponent_bits + fraction_bits) |
           (exponent & exponent_mask()) << fraction_bits | (fraction & fraction_mask());
  }
};
inline constexpr Format kBinary32 = {8, 23};
inline constexpr Format kBinary64 = {11, 52};

/// Fractions at the edges of rounding: none, the least, the highest bit, all but the least, all,
/// and one with bits everywhere.
inline std::vector<std::uint64_t> edge_fractions(const Format& format) {
  const std::uint64_t all = format.fraction_mask();
  return {0, 1, 2, all / 2, all / 2 + 1, all - 1, all, 0x5555555555555555 & all};
}

/// Numbers at the edges of the format: zeros, subnormal, normal and infinite ones, NaNs.
inline std::vector<std::uint64_t> edge_floats(const Format& format) {
  const std::uint64_t bias = format.exponent_mask() / 2, top = format.exponent_mask();
  const auto precision = static_cast<std::uint64_t>(format.fraction_bits);
  std::vector<std::uint64_t> all;
  for (const bool negative : {false, true}) {
    for (const std::uint64_t exponent :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, bias - precision - 1,
          bias - precision, bias - 1, bias, bias + 1, bias + precision + 1, top - 1, top}) {
      for (const std::uint64_t fraction : edge_fractions(format)) {
        all.push_back(format.make(negative, exponent, fraction));
      }
    }
  }
  return all;
}

/// Random operands. The same seed, the same ones.
class Operands {
 public:
  explicit Operands(std::uint64_t seed) : random_(seed) {}

  std::uint64_t bits() { return random_(); }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  /// One lane of each operand.
  std::pair<std::uint64_t, std::uint64_t> pair(Type type) {
    switch (type) {
      case Type::kFloat64: return floats(kBinary64);
      case Type::kFloat32: {
        const auto low = floats(kBinary32), high = floats(kBinary32);
        return {high.first << 32 | low.first, high.second << 32 | low.second};
      }
      default: return integers(type);
    }
  }

 private:
  // Few bits, or all but few: carries go far, and numbers are near each other.
  std::uint64_t fraction(const Format& format) {
    const std::uint64_t few = std::uint64_t{1} << below(64) | std::uint64_t{below(2)};
    switch (below(5)) {
      case 0: return 0;
      case 1: return few & format.fraction_mask();
      case 2: return ~few & format.fraction_mask();
      case 3: return (~std::uint64_t{0} << below(64)) & format.fraction_mask();
      default: return bits() & format.fraction_mask();
    }
  }

  std::uint64_t exponent(const Format& format) {
    const std::uint64_t top = format.exponent_mask();
    switch (below(10)) {
      case 0: return 0;
      case 1: return below(3);
      case 2: return top - below(3);
      case 3: return below(2 * static_cast<std::uint64_t>(format.fraction_bits));
      default: return below(top);
    }
  }

  // The second's exponent is mostly one at which the first's last bits matter.
  std::pair<std::uint64_t, std::uint64_t> floats(const Format& format) {
    const std::uint64_t first = exponent(format);
    const std::uint64_t reach = static_cast<std::uint64_t>(format.fraction_bits) + 4;
    std::uint64_t second = first;
    switch (below(8)) {
      case 0: second = exponent(format); break;
      case 1: break;
      case 2: second = first + 1 - below(3); break;
      default: second = first + reach - below(2 * reach + 1); break;
    }
    if (second > format.exponent_mask()) second = exponent(format);
    std::uint64_t left_fraction = fraction(format), right_fraction = fraction(format);
    if (below(8) == 0) right_fraction = left_fraction + 1 - below(3);
    std::uint64_t left = format.make(below(2) != 0, first, left_fraction);
    std::uint64_t right = format.make(below(2) != 0, second, right_fraction);
    if (below(2) != 0) std::swap(left, right);
    return {left, right};
  }

  std::pair<std::uint64_t, std::uint64_t> integers(Type type) {
    const std::uint64_t left = bits();
    switch (below(4)) {
      case 0: return {left, left};
      case 1: return {left, left + (type == Type::kInt64 ? 1 - below(3) : below(3))};
      case 2: return {left, ~left + below(2)};
      default: return {left, bits()};
    }
  }

  std::mt19937_64 random_;
};

}  // namespace carillon::rtl
