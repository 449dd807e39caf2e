// SPDX-License-Identifier: Apache-2.0
//
// What carries the packets of the multicast protocol: datagrams to a group or to one member, which
// may be lost, come twice, late, in another order or damaged. UDP and InfiniBand/RoCE UD implement
// it. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "transport/multicast/packet.h"

namespace carillon::multicast {

struct CarrierLimits {
  std::string name;                   ///< for people: "udp eth0", "ud rxe0"
  std::size_t datagram_bytes = 0;     ///< the largest packet
  std::uint32_t receive_packets = 0;  ///< so many wait here for receive() before some get lost
};

/// Told of what arrives.
class CarrierListener {
 public:
  virtual ~CarrierListener() = default;
  /// The bytes are there until it returns.
  virtual void on_packet(std::span<const std::byte> bytes) = 0;
};

/// One group's. Not thread-safe.
class Carrier {
 public:
  virtual ~Carrier() = default;

  [[nodiscard]] virtual const CarrierLimits& limits() const = 0;
  /// What others give to add_member; at most kMaxAddressBytes.
  [[nodiscard]] virtual std::span<const std::byte> address() const = 0;
  static constexpr std::size_t kMaxAddressBytes = 64;

  /// The members, in their order, this one among them. The bytes come from other processes: what
  /// cannot be an address is refused.
  virtual Status add_member(std::span<const std::byte> address) = 0;
  /// Begins to join the group of this name. Groups of other names may have the same address.
  virtual Status join(std::uint64_t name) = 0;
  /// True once it has joined.
  virtual Result<bool> joined() = 0;
  /// Whether this member wants to hear what is sent to the group, as it does at first. A carrier
  /// may ignore it.
  virtual Status attach(bool /*on*/) { return {}; }

  // Sends. False: no room now. What was taken may still be lost. The bytes are free on return.
  virtual bool send_group(std::span<const std::byte> packet) = 0;
  virtual bool send_member(Member member, std::span<const std::byte> packet) = 0;

  /// Tells of some of what has arrived, its own packets perhaps among it.
  virtual Status receive(CarrierListener& listener) = 0;

  /// A descriptor that becomes readable when receive() has something to tell; -1: there is none.
  /// To be slept on only right after ready_to_wait() has said so.
  [[nodiscard]] virtual int wait_descriptor() const { return -1; }
  virtual bool ready_to_wait() { return false; }
  /// That descriptor is readable whenever receive() has something to tell, slept on or not.
  [[nodiscard]] virtual bool tells_at_any_time() const { return false; }
};

}  // namespace carillon::multicast
