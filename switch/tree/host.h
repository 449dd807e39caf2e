// SPDX-License-Identifier: Apache-2.0
//
// A host of a tree: a processor and a NIC, which speak the switch protocol. The processor puts its
// operand into packets, up to a window of them; after that it takes a result, which is the credit
// for the next packet, sends that, and so on. Nothing is lost in a tree, so nothing is sent again:
// what is not as it should be ends the call with an error.
//
//   processor  send + the copy into a packet ... receive + the copy out
//   NIC        nic, then a word a cycle and Ethernet's gap; what comes is in memory nic later
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "machine/machine.h"
#include "switch/tree/link.h"
#include "switch/tree/values.h"

namespace carillon::tree {

/// What all hosts of a group have in common.
struct Membership {
  machine::Machine machine;  ///< costs of hosts, and the clock
  SipKey key;
  std::uint32_t job = 0, group = 0;
  std::uint16_t window = 0, operand_bytes = 0;
};

/// Cycles of the machine's switches, no fewer than it takes.
Cycles cycles_of(const machine::Machine& machine, std::int64_t ps);

class Host final : public Node {
 public:
  /// `number`: its port at the switch. Membership and links live as long.
  Host(const Membership& membership, std::uint32_t rank, const rtl::Address& own,
       const rtl::Address& at_switch, std::uint16_t number, Link& in, Link& out);

  /// The message's result is known: `expected`, which lives until the end of the call.
  void begin(const Message& message, Cycles cycle, const rtl::Bytes& expected);
  /// When the processor has the whole result; kNever: not yet.
  [[nodiscard]] Cycles done() const { return unanswered_ == 0 ? free_ : kNever; }
  /// What has come.
  [[nodiscard]] const rtl::Bytes& result() const { return result_; }
  [[nodiscard]] const Status& status() const { return status_; }

  [[nodiscard]] Cycles next() const override { return in_.next(); }
  void run(Cycles begin, Cycles end) override;

 private:
  [[nodiscard]] std::uint64_t packet_elements() const {
    return membership_.operand_bytes / message_.element_bytes();
  }
  [[nodiscard]] Cycles cycles(std::int64_t ps) const { return cycles_of(membership_.machine, ps); }
  void send_next();
  void take(const rtl::Bytes& frame, Cycles arrival);
  std::string why_not(const aggregate::Packet& packet) const;

  const Membership& membership_;
  std::uint32_t rank_;
  rtl::Address own_, switch_;
  std::uint16_t number_;
  Link& in_;
  Link& out_;
  FrameReader reader_;

  Message message_;
  const rtl::Bytes* expected_ = nullptr;
  rtl::Bytes result_;
  std::uint64_t packets_ = 0, sent_ = 0, unanswered_ = 0;
  std::vector<bool> answered_;
  std::uint32_t first_ = 0;  // sequence of the message's first packet
  Cycles free_ = 0;          // the processor does nothing from then on
  Cycles link_free_ = 0;     // and the link
  Status status_;
};

}  // namespace carillon::tree
