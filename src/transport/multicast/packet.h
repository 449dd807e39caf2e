// SPDX-License-Identifier: Apache-2.0
//
// Packets of the multicast protocol (docs/multicast.md): how they are built, and how bytes from a
// network are read. What is not of this group, or not whole, is nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/siphash.h"

namespace carillon::multicast {

using Key = SipKey;

using Member = std::uint32_t;  ///< of the group, from 0 on

enum class Kind : std::uint8_t {
  kData = 1,   ///< one of its source's stream, new or again
  kNack = 2,   ///< what its sender lacks of the source's stream; to all, so that others keep quiet
  kAck = 3,    ///< what its sender and all below it have of the source's stream
  kAsk = 4,    ///< the source says how much it has sent, and wants acks of it
  kProbe = 5,  ///< from who sets the group up
};

struct Packet {
  Kind kind = Kind::kData;
  Member from = 0;                  ///< who sent it
  Member source = 0;                ///< whose stream it is about
  std::uint64_t sequence = 0;       ///< data: its own; ack, ask: all below; probe: the size
  std::uint64_t message = 0;        ///< its number in the stream; of an ask: how often it was asked
  std::uint64_t message_bytes = 0;  ///< of the whole message
  std::uint64_t offset = 0;         ///< of the payload in the message
  std::span<const std::byte> payload = {};
};

/// A run of packets of a stream.
struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

inline constexpr std::size_t kHeadBytes = 56;
inline constexpr std::size_t kMaxRanges = 24;  ///< of one nack: fits into the smallest datagram
inline constexpr std::size_t kMinDatagramBytes = kHeadBytes + kMaxRanges * sizeof(Range);

/// Writes the packet to `to`, which has room, and returns its bytes. The payload may lie there
/// already.
std::span<const std::byte> build(const Key& key, const Packet& packet, std::span<std::byte> to);

/// The packet that these bytes are, if they are one of a group of so many members with this key.
/// The payload is a view of them.
std::optional<Packet> parse(const Key& key, std::uint32_t members,
                            std::span<const std::byte> bytes);

/// What the payload of a nack says; nothing if it is none. At most
/// kMaxRanges, in rising order, none empty.
std::optional<std::vector<Range>> parse_ranges(std::span<const std::byte> payload);

}  // namespace carillon::multicast
