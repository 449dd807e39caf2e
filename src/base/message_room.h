// SPDX-License-Identifier: Apache-2.0
//
// How long messages between nodes are: what a rank has room for is shared among those that may send
// it something. One rule for the transports, which make that room, and for what predicts them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace carillon {

/// All messages that others may have under way to one rank over a network fit in so much.
inline constexpr std::int64_t kReceiveBytes = 12 << 20;
/// So many may be under way from one rank to another.
inline constexpr std::int32_t kMessagesUnderWay = 8;

/// The longest message of a team of `ranks` that spans nodes: `wanted`, unless the room would not
/// do if every rank spoke to every other.
constexpr std::int64_t longest_message(std::int64_t wanted, std::int32_t ranks) {
  constexpr std::int64_t kStep = 512;
  const std::int64_t share = kReceiveBytes / kMessagesUnderWay / std::max(ranks - 1, 1);
  return std::min(wanted, std::max(share / kStep, std::int64_t{2}) * kStep);
}

}  // namespace carillon
