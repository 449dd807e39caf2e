// SPDX-License-Identifier: Apache-2.0
//
// Ethernet frames with datagrams of the switch protocol, as bytes on a wire; and records as the
// hardware's tables take them.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "switch/protocol/packet.h"

namespace carillon::rtl {

using aggregate::Endpoint;
using aggregate::Header;
using Bytes = std::vector<std::byte>;

/// A host or switch: an endpoint, and where it is.
struct Address {
  std::uint8_t port = 0;  ///< of the switch, that leads there
  std::uint64_t mac = 0;
  Endpoint endpoint;
};

inline constexpr std::size_t kUdpAt = 34;
inline constexpr std::size_t kDatagramAt = aggregate::kFrameHeaderBytes;

inline void store_mac(std::byte* to, std::uint64_t mac) {
  aggregate::store_big(to, static_cast<std::uint16_t>(mac >> 32));
  aggregate::store_big(to + 2, static_cast<std::uint32_t>(mac));
}

inline std::uint64_t load_mac(const std::byte* from) {
  return std::uint64_t{aggregate::load_big<std::uint16_t>(from)} << 32 |
         aggregate::load_big<std::uint32_t>(from + 2);
}

/// The sum of IPv4's header, as it is or to be checked.
inline std::uint16_t ipv4_sum(const std::byte* header) {
  std::uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += aggregate::load_big<std::uint16_t>(header + i);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// Writes the sum of a frame whose IPv4 header is another one now.
inline void complete_sum(Bytes& frame) {
  aggregate::store_big(&frame[24], std::uint16_t{0});
  aggregate::store_big(&frame[24], static_cast<std::uint16_t>(~ipv4_sum(&frame[14])));
}

/// Writes the lengths and the sum of a frame whose datagram has another length now.
inline void complete_frame(Bytes& frame) {
  using aggregate::store_big;
  store_big(&frame[16], static_cast<std::uint16_t>(frame.size() - 14));
  store_big(&frame[kUdpAt + 4], static_cast<std::uint16_t>(frame.size() - kUdpAt));
  complete_sum(frame);
}

inline Bytes frame_of(const Address& from, const Address& to, std::span<const std::byte> datagram) {
  using aggregate::store_big;
  Bytes frame(kDatagramAt + datagram.size());
  store_mac(frame.data(), to.mac);
  store_mac(&frame[6], from.mac);
  store_big(&frame[12], std::uint16_t{0x0800});
  frame[14] = std::byte{0x45};
  store_big(&frame[20], std::uint16_t{0x4000});  // don't fragment
  frame[22] = std::byte{64};
  frame[23] = std::byte{17};
  store_big(&frame[26], from.endpoint.ip);
  store_big(&frame[30], to.endpoint.ip);
  store_big(&frame[kUdpAt], from.endpoint.port);
  store_big(&frame[kUdpAt + 2], to.endpoint.port);
  std::copy(datagram.begin(), datagram.end(), frame.begin() + kDatagramAt);
  complete_frame(frame);
  return frame;
}

/// Of a frame with IPv4 and UDP.
inline Endpoint source_of(const Bytes& frame) {
  return {aggregate::load_big<std::uint32_t>(&frame[26]),
          aggregate::load_big<std::uint16_t>(&frame[kUdpAt])};
}

/// A record of a table, put together field by field, the highest one first.
class Record {
 public:
  static constexpr std::size_t kBits = 320;  // RecordBits of sw_switch_pkg, in whole words

  Record& add(std::uint64_t value, std::size_t bits) {
    bits_ <<= bits;
    bits_ |= std::bitset<kBits>(value);
    return *this;
  }
  Record& add(const Address& address) {
    return add(address.port, 8)
        .add(address.mac, 48)
        .add(address.endpoint.ip, 32)
        .add(address.endpoint.port, 16);
  }
  [[nodiscard]] std::uint32_t word(std::size_t i) const {
    return static_cast<std::uint32_t>(
        (bits_ >> (32 * i) & std::bitset<kBits>(0xffffffff)).to_ullong());
  }

 private:
  std::bitset<kBits> bits_;
};

enum class Table : std::uint8_t { kJobs, kGroups, kChildren, kForward, kTouched };

}  // namespace carillon::rtl
