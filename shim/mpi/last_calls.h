// SPDX-License-Identifier: Apache-2.0
//
// What a communicator remembers of its last blocking call of each collective whose blocks are all
// of one length (repeat.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "call.h"

namespace carillon::shim {

constexpr bool can_repeat(Collective collective) {
  const Kind kind = rule_of(collective).kind;
  return kind == Kind::kBarrier || kind == Kind::kData || kind == Kind::kReduction;
}

/// Among those.
constexpr std::size_t place_of_last(Collective collective) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(collective); ++i) {
    place += can_repeat(static_cast<Collective>(i)) ? 1 : 0;
  }
  return place;
}

/// As of which handles of types and operators mean what they did.
struct Generations {
  std::uint64_t types = 0, reductions = 0;
};

/// Its arguments, as they were when it began, and what carillon got for them.
struct LastCall {
  Buffer in{}, out{};
  MPI_Op op{};
  int root = 0;
  Generations began;
  const void* from = nullptr;
  void* to = nullptr;
  /// Carillon would get other addresses as they are, if they are no such bytes apart: one buffer
  /// would be a part of the other.
  bool moves = false;
  std::int64_t aliased_bytes = 0;
  crl_repeatable_t repeatable{};
};

/// Each once there was one: few are ever used on a communicator.
using LastCalls =
    std::array<std::unique_ptr<LastCall>, place_of_last(static_cast<Collective>(kCollectives))>;

}  // namespace carillon::shim
