// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/packet.h"

#include <cstring>
#include <limits>

namespace carillon::multicast {
namespace {

constexpr std::uint16_t kMagic = 0x6d43;  // "Cm"
constexpr std::uint8_t kVersion = 1;

// As it lies in a packet, little-endian. The tag covers all that follows it.
struct Head {
  std::uint64_t tag = 0;
  std::uint16_t magic = kMagic;
  std::uint8_t version = kVersion;
  std::uint8_t kind = 0;
  std::uint32_t from = 0;
  std::uint32_t source = 0;
  std::uint32_t payload_bytes = 0;
  std::uint64_t sequence = 0;
  std::uint64_t message = 0;
  std::uint64_t message_bytes = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(Head) == kHeadBytes);

constexpr std::size_t kTagBytes = sizeof(std::uint64_t);

// Only a source sends of its stream; only others answer.
bool right_sender(Kind kind, const Head& head) {
  switch (kind) {
    case Kind::kData:
    case Kind::kAsk:
    case Kind::kProbe: return head.from == head.source;
    case Kind::kNack:
    case Kind::kAck: return head.from != head.source;
  }
  return false;
}

}  // namespace

std::span<const std::byte> build(const Key& key, const Packet& packet, std::span<std::byte> to) {
  Head head;
  head.kind = static_cast<std::uint8_t>(packet.kind);
  head.from = packet.from;
  head.source = packet.source;
  head.payload_bytes = static_cast<std::uint32_t>(packet.payload.size());
  head.sequence = packet.sequence;
  head.message = packet.message;
  head.message_bytes = packet.message_bytes;
  head.offset = packet.offset;
  const auto bytes = to.first(kHeadBytes + packet.payload.size());
  std::memcpy(bytes.data(), &head, kHeadBytes);
  if (!packet.payload.empty() && packet.payload.data() != bytes.data() + kHeadBytes) {
    std::memcpy(bytes.data() + kHeadBytes, packet.payload.data(), packet.payload.size());
  }
  head.tag = siphash(key, bytes.subspan(kTagBytes));
  std::memcpy(bytes.data(), &head.tag, kTagBytes);
  return bytes;
}

std::optional<Packet> parse(const Key& key, std::uint32_t members,
                            std::span<const std::byte> bytes) {
  if (bytes.size() < kHeadBytes) return {};
  Head head;
  std::memcpy(&head, bytes.data(), kHeadBytes);
  if (head.magic != kMagic || head.version != kVersion) return {};
  if (head.payload_bytes != bytes.size() - kHeadBytes) return {};
  if (head.from >= members || head.source >= members) return {};
  const auto kind = static_cast<Kind>(head.kind);
  if (!right_sender(kind, head)) return {};
  if (head.tag != siphash(key, bytes.subspan(kTagBytes))) return {};
  return Packet{.kind = kind,
                .from = head.from,
                .source = head.source,
                .sequence = head.sequence,
                .message = head.message,
                .message_bytes = head.message_bytes,
                .offset = head.offset,
                .payload = bytes.subspan(kHeadBytes)};
}

std::optional<std::vector<Range>> parse_ranges(std::span<const std::byte> payload) {
  const std::size_t count = payload.size() / sizeof(Range);
  if (count * sizeof(Range) != payload.size() || count > kMaxRanges) return {};
  std::vector<Range> ranges(count);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Range& range = ranges[i];
    std::memcpy(&range, payload.data() + i * sizeof(Range), sizeof(Range));
    const bool fits = range.count <= std::numeric_limits<std::uint64_t>::max() - range.first;
    if (range.count == 0 || range.first < end || !fits) return {};
    end = range.first + range.count;
  }
  return ranges;
}

}  // namespace carillon::multicast
