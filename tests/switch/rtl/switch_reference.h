// SPDX-License-Identifier: Apache-2.0
//
// What the switch in hardware is compared with: the reference, with frames around its datagrams,
// and what is for others forwarded.
#pragma once

#include <array>
#include <bitset>
#include <deque>
#include <functional>
#include <map>

#include "switch/frames/frames.h"
#include "switch/model/switch.h"
#include "switch/rtl/switch_bench.h"

namespace carillon::rtl {

class SwitchReference final : private aggregate::Output {
 public:
  using Observer = std::function<void(std::span<const std::byte> datagram)>;

  /// `first`: the sequence that comes first in each group.
  SwitchReference(const SipKey& administrator, std::uint32_t first, Observer observer)
      : config_{.administrator = administrator, .first = first}, observer_(std::move(observer)) {}

  /// It is as it was made.
  void reset() {
    model_ = aggregate::Switch(config_);
    places_.clear();
    forward_.clear();
    expected_ = {};
    malformed_ = forwarded_ = undeliverable_ = 0;
  }

  /// A request of the processor's; its answer goes nowhere.
  void ask(const Endpoint& from, std::span<const std::byte> datagram) {
    struct Nowhere final : Output {
      void send(std::span<const Endpoint>, std::span<const std::byte>) override {}
    } nowhere;
    const auto met = model_.counters().control;
    model_.receive(from, datagram, nowhere);
    ASSERT_EQ(model_.counters().control, met + 1);
  }

  /// Forgets groups of which nothing has come since the last time; how many.
  std::uint64_t pass_time() {
    const std::uint64_t before = model_.counters().idle_groups;
    model_.pass_time(1);
    return model_.counters().idle_groups - before;
  }

  /// Where who is found.
  void place(const Address& address) {
    const Endpoint& endpoint = address.endpoint;
    places_[std::uint64_t{endpoint.ip} << 16 | endpoint.port] = address;
    forward_[address.mac] = address.port;
  }

  void take(std::size_t port, const Bytes& frame) {
    if (!is_own(frame)) {
      if (frame.size() < 14 || frame.size() > kLongestFrame) {
        ++undeliverable_;
      } else {
        forward(port, frame);
      }
      return;
    }
    const auto datagram = std::span(frame).subspan(kDatagramAt);
    if (!is_whole(frame)) {
      ++malformed_;
    } else if (is_control(datagram)) {
      deliver(port, Ports().set(kControlPort), frame);
    } else {
      source_ = {static_cast<std::uint8_t>(port), load_mac(&frame[6]), source_of(frame)};
      model_.receive(source_.endpoint, datagram, *this);
    }
  }

  /// The frames that leave a port, in order.
  std::deque<Bytes>& expected(std::size_t port) { return expected_[port]; }

  /// As counter_e of sw_switch_pkg has them.
  [[nodiscard]] std::array<std::uint64_t, kCounters> counters() const {
    const aggregate::Counters& c = model_.counters();
    return {c.operands,       c.results,
            c.resent_results, c.resent_partials,
            c.duplicates,     c.refused,
            c.refusals,       c.unknown_job,
            c.unknown_group,  c.malformed + malformed_,
            c.bad_tag,        c.wrong_source,
            c.stale,          c.premature,
            c.mismatched,     forwarded_,
            undeliverable_,   0};
  }

 private:
  using Ports = std::bitset<kPorts>;

  static bool is_own(const Bytes& frame) {
    using aggregate::load_big;
    return frame.size() >= kDatagramAt && load_mac(frame.data()) == kSwitch.mac &&
           load_big<std::uint16_t>(&frame[12]) == 0x0800 && frame[14] == std::byte{0x45} &&
           (load_big<std::uint16_t>(&frame[20]) & ~0x4000) == 0 && frame[23] == std::byte{17} &&
           load_big<std::uint32_t>(&frame[30]) == kSwitch.endpoint.ip &&
           load_big<std::uint16_t>(&frame[kUdpAt + 2]) == kSwitch.endpoint.port;
  }

  static bool is_whole(const Bytes& frame) {
    using aggregate::load_big;
    return frame.size() <= kLongestFrame && ipv4_sum(&frame[14]) == 0xffff &&
           load_big<std::uint16_t>(&frame[16]) == frame.size() - 14 &&
           load_big<std::uint16_t>(&frame[kUdpAt + 4]) == frame.size() - kUdpAt;
  }

  // Of a kind that the hardware does not work off; the processor looks at the rest of it.
  static bool is_control(std::span<const std::byte> datagram) {
    if (datagram.size() < aggregate::kHeaderBytes) return false;
    const Header header = aggregate::load_header(datagram.data());
    return header.version == aggregate::kVersion && header.zero == 0 &&
           (header.flags & ~aggregate::kAllFlags) == 0 && is_known(header.reason) &&
           is_known(header.kind) && header.kind != aggregate::Kind::kContribute &&
           header.kind != aggregate::Kind::kResult && header.kind != aggregate::Kind::kRefuse;
  }

  void forward(std::size_t port, const Bytes& frame) {
    const std::uint64_t mac = load_mac(frame.data());
    const auto found = forward_.find(mac);
    Ports ports = Ports().set();
    if (found != forward_.end()) ports = Ports().set(found->second);
    if (mac == kSwitch.mac) ports = Ports().set(kControlPort);
    deliver(port, ports, frame);
  }

  void deliver(std::size_t port, Ports ports, const Bytes& frame) {
    ports.reset(port);
    ++(ports.none() ? undeliverable_ : forwarded_);
    for (std::size_t i = 0; i < kPorts; ++i) {
      if (ports[i]) expected_[i].push_back(frame);
    }
  }

  void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
    observer_(datagram);
    const Header header = aggregate::load_header(datagram.data());
    // A refusal of its own goes back to where the packet came from.
    const bool back =
        header.kind == aggregate::Kind::kRefuse && header.child != aggregate::kAllChildren;
    for (const Endpoint& one : to) {
      const Address address = back ? source_ : places_.at(std::uint64_t{one.ip} << 16 | one.port);
      if (address.port < kPorts) {
        expected_[address.port].push_back(frame_of(kSwitch, address, datagram));
      } else {
        ++undeliverable_;
      }
    }
  }

  aggregate::SwitchConfig config_;
  aggregate::Switch model_{config_};
  Observer observer_;
  std::map<std::uint64_t, Address> places_;
  std::map<std::uint64_t, std::uint8_t> forward_;
  std::array<std::deque<Bytes>, kPorts> expected_;
  Address source_;
  std::uint64_t malformed_ = 0, forwarded_ = 0, undeliverable_ = 0;
};

}  // namespace carillon::rtl
