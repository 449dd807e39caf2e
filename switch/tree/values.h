// SPDX-License-Identifier: Apache-2.0
//
// What the hosts of a tree give, by rank and index, and what the protocol's arithmetic makes of it.
#pragma once

#include <cstdint>

#include "switch/frames/frames.h"

namespace carillon::tree {

/// Elements of a message.
struct Message {
  aggregate::Op op = aggregate::Op::kSum;
  aggregate::Type type = aggregate::Type::kFloat64;
  std::uint64_t count = 0;

  [[nodiscard]] std::size_t element_bytes() const { return aggregate::type_bytes(type); }
  [[nodiscard]] std::uint64_t bytes() const { return count * element_bytes(); }
};

/// A rank's elements from `first` on, as many as there is room for: any bits of integers, numbers
/// of both signs and many magnitudes of floats, so that the order of a sum is seen in it.
void fill_operand(aggregate::Type type, std::uint32_t rank, std::uint64_t first,
                  std::span<std::byte> to);

/// The result of switches with so many children each, the ranks one after another.
rtl::Bytes reference_result(const Message& message, std::uint32_t ranks, std::size_t radix);

}  // namespace carillon::tree
