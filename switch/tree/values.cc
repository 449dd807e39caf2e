// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/values.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "switch/protocol/arithmetic.h"

namespace carillon::tree {
namespace {

using aggregate::Type;

// Bits that nothing tells from random ones (SplitMix64).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// A float of these bits with an exponent within 2^-8 .. 2^7.
template <int kExponentBits, int kFractionBits, class Bits>
Bits number_of(Bits bits) {
  constexpr Bits kBias = (Bits{1} << (kExponentBits - 1)) - 1;
  constexpr Bits kExponent = (Bits{1} << kExponentBits) - 1;
  const Bits exponent = kBias - 8 + (bits >> kFractionBits & 15);
  return (bits & ~(kExponent << kFractionBits)) | exponent << kFractionBits;
}

template <class T>
void store(T value, std::span<std::byte> to, std::size_t at) {
  std::memcpy(&to[at * sizeof(T)], &value, sizeof(T));
}

// As much of a message as is reduced at a time.
constexpr std::size_t kPieceBytes = 1024;

void combine_level(const Message& message, std::size_t count, std::size_t radix,
                   std::vector<std::byte*>* operands) {
  std::vector<std::byte*> above;
  for (std::size_t first = 0; first < operands->size(); first += radix) {
    const std::size_t children = std::min(radix, operands->size() - first);
    above.push_back(aggregate::combine_ports(message.op, message.type,
                                             std::span(*operands).subspan(first, children), count));
  }
  *operands = std::move(above);
}

}  // namespace

void fill_operand(Type type, std::uint32_t rank, std::uint64_t first, std::span<std::byte> to) {
  const std::size_t element = aggregate::type_bytes(type);
  for (std::size_t i = 0; i < to.size() / element; ++i) {
    const std::uint64_t bits = mixed(mixed(rank) ^ (first + i));
    switch (type) {
      case Type::kInt64: store(bits, to, i); break;
      case Type::kInt32: store(static_cast<std::uint32_t>(bits), to, i); break;
      case Type::kFloat64: store(number_of<11, 52>(bits), to, i); break;
      case Type::kFloat32: store(number_of<8, 23>(static_cast<std::uint32_t>(bits)), to, i); break;
    }
  }
}

rtl::Bytes reference_result(const Message& message, std::uint32_t ranks, std::size_t radix) {
  const std::size_t element = message.element_bytes();
  rtl::Bytes result(message.bytes()), operands(ranks * kPieceBytes);
  for (std::size_t at = 0; at < result.size(); at += kPieceBytes) {
    const std::size_t bytes = std::min(kPieceBytes, result.size() - at);
    std::vector<std::byte*> those;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto operand = std::span(operands).subspan(rank * kPieceBytes, bytes);
      fill_operand(message.type, rank, at / element, operand);
      those.push_back(operand.data());
    }
    do {
      combine_level(message, bytes / element, radix, &those);
    } while (those.size() > 1);
    std::memcpy(&result[at], those.front(), bytes);
  }
  return result;
}

}  // namespace carillon::tree
