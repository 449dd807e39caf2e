// SPDX-License-Identifier: Apache-2.0
//
// A UDP socket of the switch protocol, for hosts and for switches in software: many datagrams per
// system call, both ways. Nothing is allocated after it is open.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {

/// The longest operand of a packet where datagrams with their IP headers may have so many bytes: a
/// multiple of 128, so that 1,500 bytes give 1,408; 0: there is no room for one.
std::uint16_t operand_bytes_of(std::int64_t mtu);

/// How packets get to another host: the address of this one that they leave by, and how long their
/// operands may be as far as the system knows.
struct Route {
  std::uint32_t from = 0;
  std::uint16_t operand_bytes = 0;
};
Result<Route> route_to(const Endpoint& to);

/// How long operands may be on the interface that has this address; of address 0, any, on that
/// which takes the shortest ones.
Result<std::uint16_t> operand_bytes_at(std::uint32_t ip);

class DatagramListener {
 public:
  DatagramListener() = default;
  DatagramListener(const DatagramListener&) = delete;
  DatagramListener& operator=(const DatagramListener&) = delete;
  virtual ~DatagramListener() = default;
  virtual void on_datagram(const Endpoint& from, std::span<const std::byte> datagram) = 0;
};

class UdpPort final : public Output {
 public:
  /// Address 0: all of this machine's: who comes from there is answered from the address that he
  /// has named (Endpoint::own_ip). Port 0: one that is free.
  static Result<std::unique_ptr<UdpPort>> open(const Endpoint& at);

  [[nodiscard]] const Endpoint& at() const { return at_; }
  /// Readable when there is something to receive.
  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// Until flush(), or until there are many.
  void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override;
  void flush();
  /// From now on what is too long, though as much was taken before, goes in fragments: an MTU has
  /// been lowered, and those who are in a group cannot agree on another length. Else it is lost.
  void allow_fragments() { may_fragment_ = true; }
  /// Hands on what has come, up to a few hundred datagrams.
  Status receive(DatagramListener& listener);

  struct Counts {
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
    std::uint64_t unsent = 0;  ///< the system did not take them
    std::uint64_t receive_calls = 0;
    std::uint64_t send_calls = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  UdpPort();
  // Which address of this machine's a datagram came to, or leaves by, as the system has it.
  struct OwnAddress {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(in_pktinfo))> bytes;
    [[nodiscard]] std::uint32_t ip(msghdr& message);
    void set(std::uint32_t ip, msghdr& message);
  };
  struct Batch {
    std::unique_ptr<std::byte[]> memory;  // which the system gives when it is touched
    std::vector<sockaddr_in> names;
    std::vector<iovec> places;
    std::vector<OwnAddress> owns;
    std::vector<mmsghdr> messages;
    std::size_t count = 0;
    explicit Batch(std::size_t datagrams);
    std::span<std::byte> datagram(std::size_t i);
  };
  bool begin_fragments(std::size_t bytes);

  UniqueFd socket_;
  Endpoint at_;
  Batch in_, out_;
  std::size_t copies_ = 0;       // datagrams in out_'s memory
  std::size_t taken_bytes_ = 0;  // of the longest datagram that was sent
  bool may_fragment_ = false;    // the kernel may be asked to cut datagrams into several,
  bool fragments_ = false;       // and has been
  Counts counts_;
};

}  // namespace carillon::aggregate
