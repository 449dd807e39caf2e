// SPDX-License-Identifier: Apache-2.0
//
// How much memory a team takes for its members on other nodes: what pairs allocate and what
// `carillon info` tells.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/message_room.h"
#include "transport/shm/layout.h"
#include "transport/verbs/credits.h"

namespace carillon::net {

/// A pair's block, at each end: where things begin (pair.h has the picture).
struct BlockLayout {
  static constexpr std::uint64_t kReadies = 64;  ///< what the member's receives are ready for
  static constexpr std::uint64_t kReadyBytes = 64;
  static constexpr std::uint64_t kLines = kReadies + shm::kWindow * kReadyBytes;
  static constexpr std::uint64_t kHeads = 16;  ///< before a payload: length and header
  static constexpr std::uint64_t kLineBytes = kHeads + shm::kInlineBytes;
  static constexpr std::uint64_t kSlots = kLines + (shm::kWindow * kLineBytes + 63) / 64 * 64;
  static constexpr std::uint64_t kSlotHead = 64;  ///< so that the payload is aligned

  std::uint64_t slot_bytes = 0;  ///< the longest message

  [[nodiscard]] static constexpr std::uint64_t ready(unsigned line) {
    return kReadies + line * kReadyBytes;
  }
  /// Of the length, header and payload of a message.
  [[nodiscard]] constexpr std::uint64_t message(unsigned line, bool is_long) const {
    if (!is_long) return kLines + line * kLineBytes;
    return kSlots + line * (kSlotHead + (slot_bytes + 63) / 64 * 64) + kSlotHead - kHeads;
  }
  [[nodiscard]] constexpr std::uint64_t bytes() const { return message(shm::kWindow, true); }
};

static_assert(kMessagesUnderWay == shm::kWindow);

/// What one rank of such a team uses for `neighbours` members on other nodes that it speaks to: a
/// block each, a buffer for a message under way, the network's own (receive entries over verbs),
/// and what it keeps of every member.
constexpr std::uint64_t team_bytes(std::int64_t wanted, int ranks, int neighbours) {
  constexpr std::uint64_t kPerMember = 1024;  // a Pair, a shm::Peer, a place in the lobby
  const auto slot = static_cast<std::uint64_t>(longest_message(wanted, ranks));
  const std::uint64_t each = BlockLayout{slot}.bytes() + slot + BlockLayout::kSlotHead +
                             sizeof(verbs::ReceiveEntry) * verbs::kCredits;
  return static_cast<std::uint64_t>(neighbours) * each +
         static_cast<std::uint64_t>(ranks) * kPerMember;
}
// At 1,024 ranks, an exchange of all with all stays below 64 MiB.
static_assert(team_bytes(64 << 10, 1024, 1023) < 64 << 20);

}  // namespace carillon::net
