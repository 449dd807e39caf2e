// SPDX-License-Identifier: Apache-2.0
#include "switch/tree/doubling_host.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "machine/costs.h"
#include "switch/protocol/arithmetic.h"
#include "switch/tree/addresses.h"
#include "switch/tree/hardware_switch.h"
#include "switch/tree/host.h"

namespace carillon::tree {
namespace {

// A frame's datagram: the step, where its bytes are in the message, and these.
constexpr std::size_t kStepAt = rtl::kDatagramAt, kOffsetAt = kStepAt + 2;
constexpr std::size_t kBytesAt = rtl::kDatagramAt + 14;
constexpr std::size_t kFrameBytes = aggregate::kBurstOperandBytes;

}  // namespace

DoublingHost::DoublingHost(const machine::Machine& machine, Messages messages, std::uint32_t rank,
                           std::uint32_t ranks, const Message& message, Link& in, Link& out)
    : machine_(machine),
      messages_(messages),
      rank_(rank),
      message_(message),
      in_(in),
      out_(out),
      value_(message.bytes()) {
  fill_operand(message.type, rank, 0, value_);
  const std::uint32_t paired = std::bit_floor(ranks);
  const auto last = static_cast<std::uint16_t>(std::bit_width(paired));
  if (rank >= paired) {
    steps_ = {{.number = 0, .to = rank - paired},
              {.number = last, .from = rank - paired, .combines = false}};
    return;
  }
  const bool has_extra = rank + paired < ranks;
  if (has_extra) steps_.push_back({.number = 0, .from = rank + paired});
  for (std::uint16_t i = 1; i < last; ++i) {
    const std::uint32_t partner = rank ^ (1U << (i - 1));
    steps_.push_back({.number = i, .to = partner, .from = partner});
  }
  if (has_extra) steps_.push_back({.number = last, .to = rank + paired});
}

void DoublingHost::begin() { proceed(); }

void DoublingHost::send(const Step& step) {
  const auto bytes = static_cast<std::int64_t>(value_.size());
  free_ += cycles_of(machine_, messages_ == Messages::kMpi
                                   ? machine::send_ps(machine_, {.bytes = bytes})
                                   : machine::put_ps(machine_, {.bytes = bytes}));
  Cycles cycle = free_ + cycles_of(machine_, machine_.in_switch.nic_ps);
  for (std::size_t at = 0; at < value_.size(); at += kFrameBytes) {
    const std::size_t length = std::min(kFrameBytes, value_.size() - at);
    rtl::Bytes datagram(kBytesAt - rtl::kDatagramAt + length);
    aggregate::store_big(&datagram[kStepAt - rtl::kDatagramAt], step.number);
    aggregate::store_big(&datagram[kOffsetAt - rtl::kDatagramAt], static_cast<std::uint32_t>(at));
    std::memcpy(&datagram[kBytesAt - rtl::kDatagramAt], &value_[at], length);
    cycle = std::max(cycle, link_free_);
    link_free_ = kGapCycles + out_.send(cycle, rtl::frame_of(host_address(rank_, 0),
                                                             host_address(step.to, 0), datagram));
  }
}

void DoublingHost::take(const rtl::Bytes& frame, Cycles cycle) {
  const bool whole =
      frame.size() > kBytesAt && rtl::load_mac(frame.data()) == host_address(rank_, 0).mac;
  const std::size_t at = whole ? aggregate::load_big<std::uint32_t>(&frame[kOffsetAt]) : 0;
  if (!whole || at + (frame.size() - kBytesAt) > value_.size()) {
    status_ = Status(Code::kInternal, "switch-tree: what has come to host " +
                                          std::to_string(rank_) + " is no message for it");
    return;
  }
  Arrival& arrival = arrivals_[aggregate::load_big<std::uint16_t>(&frame[kStepAt])];
  arrival.bytes.resize(value_.size());
  std::memcpy(&arrival.bytes[at], &frame[kBytesAt], frame.size() - kBytesAt);
  arrival.there += frame.size() - kBytesAt;
  arrival.last = cycle;
}

void DoublingHost::finish(const Step& step, const Arrival& arrival) {
  const auto bytes = static_cast<std::int64_t>(value_.size());
  const Cycles there = arrival.last + cycles_of(machine_, machine_.in_switch.nic_ps);
  std::int64_t ps = messages_ == Messages::kMpi ? machine::recv_ps(machine_, {.bytes = bytes})
                                                : machine::wait_ps(machine_);
  if (step.combines) {
    ps += machine::reduce_ps(machine_.memory, bytes);
    aggregate::combine(message_.op, message_.type, value_.data(), arrival.bytes.data(),
                       message_.count);
  } else {
    ps += machine::copy_ps(machine_.memory, bytes);
    value_ = arrival.bytes;
  }
  free_ = std::max(free_, there) + cycles_of(machine_, ps);
}

// As far as it goes with what has come.
void DoublingHost::proceed() {
  for (; at_ < steps_.size(); ++at_) {
    Step& step = steps_[at_];
    if (step.to != kNobody && !step.sent) send(step);
    step.sent = true;
    if (step.from == kNobody) continue;
    const auto arrival = arrivals_.find(step.number);
    if (arrival == arrivals_.end() || arrival->second.there < value_.size()) return;
    finish(step, arrival->second);
    arrivals_.erase(arrival);
  }
}

void DoublingHost::run(Cycles, Cycles end) {
  while (in_.next() < end) {
    const Cycles cycle = in_.next();
    const bool whole = reader_.add(in_.front());
    in_.pop();
    if (!whole || !status_.ok()) continue;
    take(reader_.frame(), cycle);
    proceed();
  }
}

}  // namespace carillon::tree
