// SPDX-License-Identifier: Apache-2.0
//
// What the two ends of a lifeline say to each other: once who they are, and at an orderly end that
// it is one. Everything that comes from a socket is judged here, and nowhere else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace carillon::lifeline {

/// Told in addresses and hellos. Of a hello, magic and version keep their places for ever.
inline constexpr std::uint32_t kVersion = 1;

/// The first bytes that either end sends; numbers with the most significant byte first:
///   0 magic   4 version   8 world   16 from (rank)   20 to (rank)
struct Hello {
  std::uint32_t version = kVersion;
  std::uint64_t world = 0;
  std::int32_t from = -1;
  std::int32_t to = -1;
};
inline constexpr std::size_t kHelloBytes = 24;
using HelloBytes = std::array<std::byte, kHelloBytes>;

/// After the hellos, one byte: the sender ends in order. Other bytes mean nothing so far.
inline constexpr std::byte kBye{0x42};

HelloBytes encode(const Hello& hello);

/// Who an end expects to hear.
struct Expected {
  std::uint64_t world = 0;
  int to = 0;     ///< this process
  int ranks = 1;  ///< from is one of them, and not `to`
};

struct Verdict {
  enum class Kind {
    kIncomplete,    ///< right so far; more must come
    kGood,          ///< says `from`
    kNotCarillon,   ///< not a hello
    kOtherVersion,  ///< says `version`; nothing else of it can be read
    kOtherWorld,    ///< a process of another job
    kWrongRank      ///< ranks that cannot be
  };
  Kind kind = Kind::kIncomplete;
  std::uint32_t version = 0;
  int from = -1;
};

/// For people: "rank 3 runs version 7 ..., and this is version 1".
std::string other_version(const std::string& who, std::uint32_t version);

/// Judges the first bytes that came, however many or few.
Verdict judge(std::span<const std::byte> bytes, const Expected& expected);

}  // namespace carillon::lifeline
