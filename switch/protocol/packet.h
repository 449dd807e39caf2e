// SPDX-License-Identifier: Apache-2.0
//
// Packets of the switch protocol (docs/switch-protocol.md): how they are built, and how bytes from
// a network are read. What is not whole, or of no meaning, is nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/siphash.h"
#include "switch/protocol/protocol.h"

namespace carillon::aggregate {

/// Of IPv4 and UDP; both as numbers. Nothing is nowhere.
struct Endpoint {
  std::uint32_t ip = 0;
  std::uint16_t port = 0;
  /// Of a machine with several addresses, that by which it is known there; 0: as the route says. It
  /// is no part of who is meant.
  std::uint32_t own_ip = 0;
  bool operator==(const Endpoint& other) const { return ip == other.ip && port == other.port; }
};
/// Whether it can be one host's.
bool is_host(const Endpoint& endpoint);

/// Where packets go.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  virtual ~Output() = default;
  /// Takes a copy. What it has no room for is lost.
  virtual void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) = 0;
};

inline constexpr std::size_t kMaxDatagramBytes = kHeaderBytes + kMaxOperandBytes;

struct Packet {
  Header header;
  std::span<const std::byte> payload;
};

/// 0 if there is no such type.
std::size_t type_bytes(Type type);
/// Whether the switch computes it.
bool is_defined(Op op, Type type);
inline std::uint32_t slots_of(std::uint32_t window) { return window * kSlotsPerWindow; }

/// Reads a datagram: nothing if it is not a packet of this version that could have a meaning. The
/// tag is not looked at.
std::optional<Packet> parse(std::span<const std::byte> datagram);

/// Whether the packet was made with the key. The datagram has a header.
bool is_authentic(const SipKey& key, std::span<const std::byte> datagram);
/// Writes the header, and the tag of it and the payload that follows it.
void seal(const SipKey& key, const Header& header, std::span<std::byte> datagram);

/// The header of a request's or contribution's refusal. Its tag is that of what is refused, until
/// it is sealed.
Header refusal_of(const Header& header, Reason reason);
/// Whether the refusal is made with the key; or, by a switch that does not know the job and so has
/// no key, by one that has seen what was sent: then it has the same tag. Both have a header.
bool is_refusal_of(const SipKey& key, std::span<const std::byte> sent,
                   std::span<const std::byte> refusal);
/// Whether the tag is made with the administrator's key.
bool is_administrators(const Header& header);

/// The key of an instance of a job: who knows the administrator's key knows it.
SipKey job_key(const SipKey& administrator, std::uint32_t job, std::uint64_t nonce);

}  // namespace carillon::aggregate
