// SPDX-License-Identifier: Apache-2.0
#include "switch/protocol/packet.h"

#include <algorithm>
#include <array>

namespace carillon::aggregate {
namespace {

// The words that are hashed are those of a data path of 64 bits: UDP's header ends 2 bytes after
// such a word begins, and the tag is a whole one.
constexpr std::size_t kPrefixBytes = 2;
static_assert((kFrameHeaderBytes - kPrefixBytes) % 8 == 0);
static_assert((kFrameHeaderBytes + kHeaderTagAt) % 8 == 0);
static_assert(kHeaderTagAt + 8 == kHeaderBytes);

std::uint64_t tag_of(const SipKey& key, std::span<const std::byte> datagram) {
  std::array<std::byte, kPrefixBytes + kHeaderTagAt> front{};
  std::copy_n(datagram.begin(), kHeaderTagAt, front.begin() + kPrefixBytes);
  SipHash hash(key);
  hash.add(front);
  return hash.finish(datagram.subspan(kHeaderBytes));
}

bool has_operand_payload(const Packet& packet) {
  const Header& header = packet.header;
  if (!is_defined(header.op, header.type)) return false;
  const std::size_t bytes = header.count * type_bytes(header.type);
  const bool burst = (header.flags & kBurstFlag) != 0;
  if (bytes > (burst ? kMaxOperandBytes : kBlockOperandBytes)) return false;
  if ((header.flags & kEmptyFlag) != 0) return packet.payload.empty();
  return header.count > 0 && packet.payload.size() == bytes;
}

// Of what carries no operand.
bool is_plain(const Header& header) {
  return header.flags == 0 && header.op == Op{} && header.type == Type{} && header.count == 0 &&
         header.offset == 0 && header.slot == 0 && header.child == 0;
}

bool is_tree(std::span<const std::byte> payload) {
  if (payload.size() < kTreeBytes) return false;
  const Tree tree = load_tree(payload.data());
  return tree.children <= kMaxChildren &&
         payload.size() == kTreeBytes + tree.children * kChildBytes;
}

bool has_meaning(const Packet& packet) {
  const Header& header = packet.header;
  const std::size_t bytes = packet.payload.size();
  const bool refused = header.reason != Reason::kNone;
  switch (header.kind) {
    case Kind::kContribute:
      return !refused && header.job != 0 && header.child < kMaxChildren &&
             has_operand_payload(packet);
    case Kind::kResult:
      return !refused && header.job != 0 && header.child == kAllChildren &&
             (header.flags & kAgainFlag) == 0 && has_operand_payload(packet);
    case Kind::kRefuse: return refused && bytes == 0;
    case Kind::kFallBack: {
      Header rest = header;
      rest.child = 0;
      rest.flags &= static_cast<std::uint8_t>(~kAgainFlag);
      return !refused && header.job != 0 && header.child < kMaxChildren && is_plain(rest) &&
             bytes == 0;
    }
    case Kind::kAskLimits: return !refused && is_plain(header) && bytes == 0;
    case Kind::kLimits: return !refused && is_plain(header) && bytes == kLimitsBytes;
    case Kind::kInstallJob:
    case Kind::kRemoveJob:
      return !refused && is_plain(header) && header.job != 0 && bytes == kJobBytes;
    case Kind::kBuildGroup:
      return !refused && is_plain(header) && header.job != 0 && is_tree(packet.payload);
    case Kind::kFreeGroup:
    case Kind::kJobInstalled:
    case Kind::kJobRemoved:
    case Kind::kGroupBuilt:
    case Kind::kGroupFreed: return !refused && is_plain(header) && header.job != 0 && bytes == 0;
    case Kind::kRefuseControl: return refused && is_plain(header) && bytes == 0;
  }
  return false;
}

}  // namespace

bool is_host(const Endpoint& endpoint) {
  const std::uint32_t net = endpoint.ip >> 24;
  return endpoint.port != 0 && net != 0 && net < 224;
}

std::size_t type_bytes(Type type) {
  switch (type) {
    case Type::kInt32:
    case Type::kFloat32: return 4;
    case Type::kInt64:
    case Type::kFloat64: return 8;
  }
  return 0;
}

bool is_defined(Op op, Type type) {
  if (!is_known(op) || !is_known(type)) return false;
  const bool bitwise = op == Op::kAnd || op == Op::kOr || op == Op::kXor;
  return !bitwise || type == Type::kInt32 || type == Type::kInt64;
}

std::optional<Packet> parse(std::span<const std::byte> datagram) {
  if (datagram.size() < kHeaderBytes || datagram.size() > kMaxDatagramBytes) return {};
  const Packet packet = {load_header(datagram.data()), datagram.subspan(kHeaderBytes)};
  const Header& header = packet.header;
  if (header.version != kVersion || header.zero != 0 || (header.flags & ~kAllFlags) != 0) return {};
  if (!is_known(header.kind) || !is_known(header.reason)) return {};
  if (!has_meaning(packet)) return {};
  return packet;
}

bool is_authentic(const SipKey& key, std::span<const std::byte> datagram) {
  return load_big<std::uint64_t>(datagram.data() + kHeaderTagAt) == tag_of(key, datagram);
}

void seal(const SipKey& key, const Header& header, std::span<std::byte> datagram) {
  store(datagram.data(), header);
  store_big(datagram.data() + kHeaderTagAt, tag_of(key, datagram));
}

Header refusal_of(const Header& header, Reason reason) {
  Header refusal = header;
  refusal.kind = header.kind == Kind::kContribute ? Kind::kRefuse : Kind::kRefuseControl;
  refusal.reason = reason;
  return refusal;
}

bool is_refusal_of(const SipKey& key, std::span<const std::byte> sent,
                   std::span<const std::byte> refusal) {
  const Header header = load_header(refusal.data());
  const bool echoes =
      header.reason == Reason::kUnknownJob && header.tag == load_header(sent.data()).tag;
  return echoes || is_authentic(key, refusal);
}

bool is_administrators(const Header& header) {
  switch (header.kind) {
    case Kind::kInstallJob:
    case Kind::kJobInstalled:
    case Kind::kRemoveJob:
    case Kind::kJobRemoved: return true;
    default: return header.job == 0;
  }
}

SipKey job_key(const SipKey& administrator, std::uint32_t job, std::uint64_t nonce) {
  // Never the bytes of a packet, whose first ones are zero.
  std::array<std::byte, 16> bytes{};
  store_big(bytes.data() + 4, job);
  store_big(bytes.data() + 8, nonce);
  SipKey key;
  bytes[0] = std::byte{1};
  key.low = siphash(administrator, bytes);
  bytes[0] = std::byte{2};
  key.high = siphash(administrator, bytes);
  return key;
}

}  // namespace carillon::aggregate
