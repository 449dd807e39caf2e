// SPDX-License-Identifier: Apache-2.0
#include "team/lifeline_message.h"

#include <algorithm>

namespace carillon::lifeline {
namespace {

constexpr std::uint32_t kMagic = 0x43524C4C;  // "CRLL"
constexpr std::size_t kVersionAt = 4, kWorldAt = 8, kFromAt = 16, kToAt = 20;

template <typename T>
void put(HelloBytes& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8 | std::to_integer<T>(bytes[at + i]));
  }
  return value;
}

}  // namespace

HelloBytes encode(const Hello& hello) {
  HelloBytes bytes = {};
  put(bytes, 0, kMagic);
  put(bytes, kVersionAt, hello.version);
  put(bytes, kWorldAt, hello.world);
  put(bytes, kFromAt, static_cast<std::uint32_t>(hello.from));
  put(bytes, kToAt, static_cast<std::uint32_t>(hello.to));
  return bytes;
}

std::string other_version(const std::string& who, std::uint32_t version) {
  return who + " runs version " + std::to_string(version) +
         " of carillon's lifelines, and this is version " + std::to_string(kVersion) +
         "; start all ranks with the same carillon";
}

Verdict judge(std::span<const std::byte> bytes, const Expected& expected) {
  using Kind = Verdict::Kind;
  const HelloBytes model = encode({});
  const std::size_t known = std::min(bytes.size(), kVersionAt);
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(known),
                  model.begin())) {
    return {.kind = Kind::kNotCarillon};  // said at once, not after the rest has come
  }
  if (bytes.size() < kWorldAt) return {};
  const auto version = get<std::uint32_t>(bytes, kVersionAt);
  if (version != kVersion) return {.kind = Kind::kOtherVersion, .version = version};
  if (bytes.size() < kHelloBytes) return {};
  if (get<std::uint64_t>(bytes, kWorldAt) != expected.world) return {.kind = Kind::kOtherWorld};
  const auto from = static_cast<std::int32_t>(get<std::uint32_t>(bytes, kFromAt));
  const auto to = static_cast<std::int32_t>(get<std::uint32_t>(bytes, kToAt));
  if (to != expected.to || from < 0 || from >= expected.ranks || from == to) {
    return {.kind = Kind::kWrongRank};
  }
  return {.kind = Kind::kGood, .version = version, .from = from};
}

}  // namespace carillon::lifeline
