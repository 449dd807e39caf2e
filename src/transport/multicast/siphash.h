// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson, Bernstein 2012): a checksum that only who has the key can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace carillon::multicast {

struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

std::uint64_t siphash(const Key& key, std::span<const std::byte> bytes);

}  // namespace carillon::multicast
