// SPDX-License-Identifier: Apache-2.0
//
// Where the time of collectives goes, by kind of work. A run that is not measured runs the same
// code with a clock that does nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace carillon {

enum class Work : std::uint8_t {
  kPack,    ///< copies of what is sent next, to where it is sent from
  kUnpack,  ///< copies of messages to where they belong
  kRotate,  ///< copies between a rank's own spaces
  kReduce,
  kPost,  ///< all else that puts, sends and releases take
  kWait,  ///< for messages, for room, for what the network still reads
};
inline constexpr int kWorks = 6;
inline constexpr std::array<std::string_view, kWorks> kWorkNames = {"pack",   "unpack", "rotate",
                                                                    "reduce", "post",   "wait"};

/// Of all collectives since it was asked for.
struct Breakdown {
  std::array<std::int64_t, kWorks> ns{};
  std::uint64_t runs = 0;
};

/// Does nothing.
struct NoClock {
  void charge(Work /*work*/) const {}
};

/// Charges the time since it was charged last to a kind of work.
class LapClock {
 public:
  LapClock(Breakdown& breakdown, std::int64_t& last_ns)
      : breakdown_(breakdown), last_ns_(last_ns) {}
  void charge(Work work) {
    const std::int64_t now = now_ns();
    breakdown_.ns[static_cast<std::size_t>(work)] += now - last_ns_;
    last_ns_ = now;
  }
  static std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

 private:
  Breakdown& breakdown_;
  std::int64_t& last_ns_;
};

}  // namespace carillon
