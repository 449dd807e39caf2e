// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

#include <bit>
#include <cstring>

namespace carillon {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

SipHash::SipHash(const SipKey& key)
    : a_(key.low ^ UINT64_C(0x736f6d6570736575)),
      b_(key.high ^ UINT64_C(0x646f72616e646f6d)),
      c_(key.low ^ UINT64_C(0x6c7967656e657261)),
      d_(key.high ^ UINT64_C(0x7465646279746573)) {}

inline void SipHash::round() {
  a_ += b_;
  b_ = std::rotl(b_, 13) ^ a_;
  a_ = std::rotl(a_, 32);
  c_ += d_;
  d_ = std::rotl(d_, 16) ^ c_;
  a_ += d_;
  d_ = std::rotl(d_, 21) ^ a_;
  c_ += b_;
  b_ = std::rotl(b_, 17) ^ c_;
  c_ = std::rotl(c_, 32);
}

inline void SipHash::take(std::uint64_t word) {
  d_ ^= word;
  round();
  round();
  a_ ^= word;
}

void SipHash::add(std::span<const std::byte> words) {
  for (std::size_t at = 0; at < words.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, words.data() + at, 8);
    take(word);
  }
  bytes_ += words.size();
}

std::uint64_t SipHash::finish(std::span<const std::byte> rest) {
  const std::size_t whole = rest.size() / 8 * 8;
  add(rest.first(whole));
  bytes_ += rest.size() - whole;
  std::uint64_t last = bytes_ << 56;
  for (std::size_t at = whole; at < rest.size(); ++at) {
    last |= std::to_integer<std::uint64_t>(rest[at]) << (8 * (at - whole));
  }
  take(last);
  c_ ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return a_ ^ b_ ^ c_ ^ d_;
}

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes) {
  return SipHash(key).finish(bytes);
}

}  // namespace carillon
