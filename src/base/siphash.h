// SPDX-License-Identifier: Apache-2.0
//
// SipHash-2-4 (Aumasson, Bernstein 2012): a checksum that only who has the key can make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace carillon {

struct SipKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const SipKey&) const = default;
};

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes);

/// The same of bytes that lie in several places.
class SipHash {
 public:
  explicit SipHash(const SipKey& key);
  /// A multiple of 8 bytes.
  void add(std::span<const std::byte> words);
  /// The last ones, any number.
  std::uint64_t finish(std::span<const std::byte> rest);

 private:
  void round();
  void take(std::uint64_t word);

  std::uint64_t a_, b_, c_, d_;
  std::uint64_t bytes_ = 0;
};

}  // namespace carillon
