// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/host.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "machine/costs.h"
#include "switch/tree/hardware_switch.h"

namespace carillon::tree {

using aggregate::Header, aggregate::Kind, aggregate::Packet;

Cycles cycles_of(const machine::Machine& machine, std::int64_t ps) {
  const std::int64_t cycle = machine.in_switch.cycle_ps;
  return (ps + cycle - 1) / cycle;
}

Host::Host(const Membership& membership, std::uint32_t rank, const rtl::Address& own,
           const rtl::Address& at_switch, std::uint16_t number, Link& in, Link& out)
    : membership_(membership),
      rank_(rank),
      own_(own),
      switch_(at_switch),
      number_(number),
      in_(in),
      out_(out) {}

void Host::begin(const Message& message, Cycles cycle, const rtl::Bytes& expected) {
  first_ += static_cast<std::uint32_t>(packets_);
  message_ = message;
  expected_ = &expected;
  packets_ = (message.count + packet_elements() - 1) / packet_elements();
  sent_ = 0;
  unanswered_ = packets_;
  answered_.assign(packets_, false);
  result_.assign(message.bytes(), std::byte{});
  free_ = std::max(free_, cycle);
  while (sent_ < std::min<std::uint64_t>(packets_, membership_.window)) send_next();
}

void Host::send_next() {
  const std::uint64_t first = sent_ * packet_elements();
  const std::uint64_t count = std::min(packet_elements(), message_.count - first);
  const std::size_t bytes = count * message_.element_bytes();
  const bool burst = packets_ > 1 || bytes > aggregate::kBlockOperandBytes;
  const bool last = sent_ + 1 == packets_;
  const auto sequence = static_cast<std::uint32_t>(first_ + sent_);
  const Header header = {
      .version = aggregate::kVersion,
      .kind = Kind::kContribute,
      .flags = static_cast<std::uint8_t>((burst ? aggregate::kBurstFlag : 0) |
                                         (last ? aggregate::kLastFlag : 0)),
      .op = message_.op,
      .type = message_.type,
      .count = static_cast<std::uint16_t>(count),
      .job = membership_.job,
      .group = membership_.group,
      .sequence = sequence,
      .offset = static_cast<std::uint32_t>(first),
      .slot = static_cast<std::uint16_t>(sequence % aggregate::slots_of(membership_.window)),
      .child = number_};
  rtl::Bytes datagram(aggregate::kHeaderBytes + bytes);
  fill_operand(message_.type, rank_, first, std::span(datagram).subspan(aggregate::kHeaderBytes));
  aggregate::seal(membership_.key, header, datagram);
  const machine::Machine& m = membership_.machine;
  free_ += cycles(machine::contribute_ps(m, static_cast<std::int64_t>(bytes)));
  const Cycles begin = std::max(link_free_, free_ + cycles(m.in_switch.nic_ps));
  link_free_ = out_.send(begin, rtl::frame_of(own_, switch_, datagram)) + kGapCycles;
  ++sent_;
}

// Why it is not a result that is waited for; empty: it is.
std::string Host::why_not(const Packet& packet) const {
  const Header& header = packet.header;
  if (header.kind != Kind::kResult || header.job != membership_.job ||
      header.group != membership_.group) {
    return "no result of this group";
  }
  const std::uint64_t number = header.sequence - first_;
  if (number >= sent_) return "of a packet that was not sent";
  if (answered_[number]) return "a result that was there";
  const std::size_t at = header.offset * message_.element_bytes();
  if (header.offset != number * packet_elements() || header.op != message_.op ||
      header.type != message_.type || at + packet.payload.size() > expected_->size()) {
    return "a result of something else";
  }
  if (!std::ranges::equal(packet.payload,
                          std::span(*expected_).subspan(at, packet.payload.size()))) {
    return "another result than the reference's";
  }
  return {};
}

void Host::take(const rtl::Bytes& frame, Cycles arrival) {
  const auto datagram = std::span(frame).subspan(std::min(frame.size(), rtl::kDatagramAt));
  const std::optional<Packet> packet = aggregate::parse(datagram);
  const bool authentic = packet && rtl::load_mac(frame.data()) == own_.mac &&
                         aggregate::is_authentic(membership_.key, datagram);
  const std::string why = authentic ? why_not(*packet) : "no packet for it";
  if (!why.empty()) {
    status_ = Status(Code::kInternal,
                     "switch-tree: what has come to host " + std::to_string(rank_) + " is " + why);
    return;
  }
  const Header& header = packet->header;
  std::ranges::copy(
      packet->payload,
      result_.begin() + static_cast<std::ptrdiff_t>(header.offset * message_.element_bytes()));
  answered_[header.sequence - first_] = true;
  --unanswered_;
  const machine::Machine& m = membership_.machine;
  free_ = std::max(free_, arrival + cycles(m.in_switch.nic_ps)) +
          cycles(machine::take_result_ps(m, static_cast<std::int64_t>(packet->payload.size())));
  if (sent_ < packets_) send_next();
}

void Host::run(Cycles, Cycles end) {
  while (in_.next() < end) {
    const Cycles cycle = in_.next();
    const bool whole = reader_.add(in_.front());
    in_.pop();
    if (whole && status_.ok()) take(reader_.frame(), cycle);
  }
}

}  // namespace carillon::tree
