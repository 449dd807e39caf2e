// SPDX-License-Identifier: Apache-2.0
//
// What hosts and a parent send to a switch, and what they should not: frames at random. Hosts go on
// when they have results; packets come in any order, again, or never, and wrong in many ways.
#pragma once

#include <array>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include "switch/frames/frames.h"
#include "switch/rtl/operands.h"
#include "switch/rtl/switch_bench.h"

namespace carillon::rtl {

using aggregate::Kind;
using aggregate::Reason;

inline constexpr SipKey kAdministrator = {0x1122334455667788, 0x99aabbccddeeff00};
inline constexpr std::uint64_t kNonce = 5;
inline constexpr std::array<std::uint32_t, 2> kJobs = {7, 0x80000009};
inline constexpr std::uint32_t kUnknownJob = 11;

inline SipKey key_of(std::uint32_t job) {
  return job == 0 ? kAdministrator : aggregate::job_key(kAdministrator, job, kNonce);
}

/// Hosts at each port but the processor's; the last two are the parents of switches.
inline constexpr std::size_t kHosts = kPorts < 16 ? 18 : kPorts + 1;
inline Address host(std::size_t i) {
  return {static_cast<std::uint8_t>(i % kControlPort),
          0x020000000100 + i % kControlPort,
          {static_cast<std::uint32_t>(0x0a000001 + i / 3), static_cast<std::uint16_t>(1000 + i)}};
}

/// A group of the switch under test.
struct TestGroup {
  std::uint32_t job = 0, group = 0;
  bool root = true;
  Address parent;
  std::uint16_t parent_child = 0, window = 1, operand_bytes = 8;
  std::array<std::optional<Address>, kChildren> children;

  // How far it is: results of all before base have been seen, and of these.
  std::uint32_t first = 0, base = 0;
  std::set<std::uint32_t> seen;
  std::map<std::uint32_t, Bytes> partials;  // sent up, by their number from the first

  void see(const Header& header, std::span<const std::byte> datagram) {
    if (header.kind == Kind::kContribute) {
      partials[header.sequence - first] = {datagram.begin(), datagram.end()};
      while (partials.size() > 8) partials.erase(partials.begin());
    }
    if (header.kind != Kind::kResult) return;
    seen.insert(header.sequence);
    while (seen.erase(base) != 0) ++base;
  }
};

struct Input {
  std::size_t port;
  Bytes frame;
};

class Traffic {
 public:
  /// `first`: the sequence that comes first in each group.
  Traffic(std::uint64_t seed, std::uint32_t first) : first_(first), random_(seed) {}

  std::array<TestGroup, kGroups> groups;

  Input next() {
    Input input;
    switch (random_.below(20)) {
      case 0: input = other(); break;
      case 1: input = control(); break;
      case 2:
      case 3:
        input = history_.empty() ? contribution() : history_[random_.below(history_.size())];
        break;
      case 4:
      case 5:
      case 6: input = from_parent(); break;
      default: input = contribution(); break;
    }
    if (history_.size() < 64) history_.push_back(input);
    history_[random_.below(history_.size())] = input;
    if (one_of(25)) spoil(input.frame);
    if (one_of(50)) input.port = random_.below(kPorts);
    return input;
  }

  /// Contributions of a group's children to the same packet, of most of them, for each port: mostly
  /// they go together. To be sent at once.
  std::vector<Input> round() {
    TestGroup& group = groups[random_.below(groups.size())];
    const std::uint32_t sequence =
        one_of(8) ? sequence_of(group)
                  : group.base + static_cast<std::uint32_t>(one_of(3) ? group.window - 1 : 0);
    std::vector<Input> inputs;
    const bool is_odd = one_of(3), all_are_empty = one_of(12);
    for (std::size_t child = 0; child < kChildren; ++child) {
      if (!group.children[child].has_value() || one_of(16)) continue;
      Header header = message(group, sequence);
      header.kind = Kind::kContribute;
      header.child = static_cast<std::uint16_t>(child);
      if (header.count == 0 || all_are_empty || one_of(12)) header.flags |= aggregate::kEmptyFlag;
      if (one_of(12)) header.flags |= aggregate::kAgainFlag;
      if (is_odd && one_of(8)) twist(header);
      Address from = *group.children[child];
      if (is_odd && one_of(12)) from = host(random_.below(kHosts));
      if (is_odd && one_of(12)) from.endpoint.port ^= 1;  // somebody else of the same address
      inputs.push_back(packet(from, header, payload(header)));
      if (is_odd && one_of(8)) inputs.back().port = random_.below(kPorts);
      if (is_odd && one_of(12)) spoil(inputs.back().frame);
      if (is_odd && one_of(8)) inputs.push_back({random_.below(kPorts), inputs.back().frame});
    }
    return inputs;
  }

  /// Another shape.
  void change(TestGroup& group, std::uint32_t id) {
    group = {.job = kJobs[random_.below(kJobs.size())], .group = id, .first = first_};
    group.base = first_;
    group.root = one_of(2);
    if (!group.root) group.parent = host(kHosts - 2 + random_.below(2));
    group.parent_child = static_cast<std::uint16_t>(group.root ? 0 : random_.below(64));
    group.window = static_cast<std::uint16_t>(1U << random_.below(std::bit_width(kWindow)));
    constexpr std::array<std::uint16_t, 4> kMost = {8, 264, 104, kOperandBytes};
    group.operand_bytes = kMost[random_.below(4)];
    const bool most_are_there = kChildren < 8 || one_of(2);
    bool any = false;
    while (!any) {
      for (auto& child : group.children) {
        child.reset();
        if (one_of(4) != most_are_there) child = host(random_.below(kHosts - 2));
        any = any || child.has_value();
      }
    }
  }

 private:
  bool one_of(std::uint64_t n) { return random_.below(n) == 0; }

  // What all hosts say of the packet with this sequence: anything, but the same.
  Header message(const TestGroup& group, std::uint32_t sequence) {
    Operands same(std::uint64_t{group.group} << 32 | sequence);
    const auto operations = all_operations();
    const Operation& operation = operations[same.below(operations.size())];
    Header header = {
        .version = aggregate::kVersion,
        .op = operation.op,
        .type = operation.type,
        .job = group.job,
        .group = group.group,
        .sequence = sequence,
        .offset = static_cast<std::uint32_t>(same.bits()),
        .slot = static_cast<std::uint16_t>(sequence % aggregate::slots_of(group.window))};
    const bool burst = same.below(2) != 0;
    header.flags = static_cast<std::uint8_t>((burst ? aggregate::kBurstFlag : 0) |
                                             (same.below(2) != 0 ? aggregate::kLastFlag : 0));
    const std::size_t most =
        std::min<std::size_t>(group.operand_bytes, burst ? 8192 : aggregate::kBlockOperandBytes) /
        aggregate::type_bytes(operation.type);
    constexpr std::array<std::uint64_t, 4> kCounts = {3, 13, 40, kOperandBytes / 4};
    const std::size_t limit = std::min<std::size_t>(most, kCounts[same.below(4)]);
    header.count = static_cast<std::uint16_t>(same.below(limit + 1));
    return header;
  }

  Bytes payload(const Header& header) {
    if ((header.flags & aggregate::kEmptyFlag) != 0) return {};
    Bytes bytes(header.count * aggregate::type_bytes(header.type));
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
      const std::uint64_t lane = random_.pair(header.type).first;
      std::memcpy(&bytes[at], &lane, std::min<std::size_t>(8, bytes.size() - at));
    }
    return bytes;
  }

  Bytes sealed(const Header& header, const Bytes& payload) {
    Bytes datagram(aggregate::kHeaderBytes + payload.size());
    std::copy(payload.begin(), payload.end(), datagram.begin() + aggregate::kHeaderBytes);
    SipKey key = key_of(header.job);
    if (one_of(50)) key.low ^= 1;
    aggregate::seal(key, header, datagram);
    return datagram;
  }

  Input packet(const Address& from, const Header& header, const Bytes& payload) {
    return {from.port, frame_of(from, kSwitch, sealed(header, payload))};
  }

  // One field is something else, which may have a meaning.
  void twist(Header& header) {
    switch (random_.below(14)) {
      case 0: header.flags ^= static_cast<std::uint8_t>(1U << random_.below(5)); break;
      case 1: header.op = static_cast<Op>(random_.below(7)); break;
      case 2: header.type = static_cast<Type>(random_.below(5)); break;
      case 3: header.count ^= static_cast<std::uint16_t>(1U << random_.below(16)); break;
      case 4: header.offset ^= 1; break;
      case 5: header.slot ^= static_cast<std::uint16_t>(1U << random_.below(16)); break;
      case 6:
        header.child = static_cast<std::uint16_t>(one_of(2) ? random_.below(66) : 0xffff);
        break;
      case 7: header.reason = static_cast<Reason>(random_.below(11)); break;
      case 8: header.kind = static_cast<Kind>(random_.below(0x1c)); break;
      case 9: header.job = one_of(2) ? kUnknownJob : 0; break;
      case 10: header.group ^= 0x40000; break;
      case 11: header.version = static_cast<std::uint8_t>(random_.below(3)); break;
      case 12: {  // any bit
        Bytes bytes(aggregate::kHeaderBytes);
        aggregate::store(bytes.data(), header);
        flip(bytes[random_.below(bytes.size())]);
        header = aggregate::load_header(bytes.data());
        break;
      }
      default: header.zero = static_cast<std::uint8_t>(random_.below(2)); break;
    }
  }

  std::uint32_t sequence_of(const TestGroup& group) {
    const std::uint64_t window = group.window;
    if (!one_of(12)) return group.base + static_cast<std::uint32_t>(random_.below(window));
    // Also of rounds that are over, and of those to come.
    return group.base + static_cast<std::uint32_t>(random_.below(9 * window)) -
           static_cast<std::uint32_t>(5 * window);
  }

  Input contribution() {
    TestGroup& group = groups[random_.below(groups.size())];
    std::size_t child = random_.below(kChildren);
    while (!group.children[child].has_value() && !one_of(50)) child = random_.below(kChildren);
    const Address from = group.children[child].value_or(host(random_.below(kHosts - 2)));
    Header header = message(group, sequence_of(group));
    header.kind = Kind::kContribute;
    header.child = static_cast<std::uint16_t>(child);
    if (header.count == 0 || one_of(6)) header.flags |= aggregate::kEmptyFlag;
    if (one_of(6)) header.flags |= aggregate::kAgainFlag;
    const Bytes operand = payload(header);
    if (one_of(12)) twist(header);
    return packet(one_of(60) ? host(random_.below(kHosts)) : from, header,
                  one_of(4) ? payload(header) : operand);
  }

  Input from_parent() {
    TestGroup& group = groups[random_.below(groups.size())];
    if (group.partials.empty()) return contribution();
    auto partial = group.partials.begin();
    std::advance(partial, random_.below(group.partials.size()));
    Header header = aggregate::load_header(partial->second.data());
    const Address from = one_of(60) ? host(random_.below(kHosts)) : group.parent;
    if (one_of(6)) return refusal(from, header);
    header.kind = Kind::kResult;
    header.child = aggregate::kAllChildren;
    header.tag = 0;
    // Others may have operands where this switch's hosts have none, and it is not so the other way.
    if (header.count > 0) header.flags &= static_cast<std::uint8_t>(~aggregate::kEmptyFlag);
    if (one_of(10)) header.flags |= aggregate::kEmptyFlag;
    const Bytes result = payload(header);
    if (one_of(6)) header.offset ^= 2;  // right in all, but of another message
    if (one_of(12)) twist(header);
    if (one_of(20)) header.group ^= 0x40000;  // none
    return packet(from, header, result);
  }

  Input refusal(const Address& from, Header header) {
    header = aggregate::refusal_of(header, static_cast<Reason>(1 + random_.below(9)));
    if (one_of(3)) header.child = aggregate::kAllChildren;
    if (one_of(12)) twist(header);
    if (header.reason != Reason::kUnknownJob || one_of(3)) return packet(from, header, {});
    // Without the key: it repeats the tag.
    Bytes datagram(aggregate::kHeaderBytes);
    aggregate::store(datagram.data(), header);
    if (one_of(4)) datagram[random_.below(datagram.size())] ^= std::byte{4};
    return {from.port, frame_of(from, kSwitch, datagram)};
  }

  // What the processor is for.
  Input control() {
    const Header header = {.version = aggregate::kVersion,
                           .kind = static_cast<Kind>(0x10 + random_.below(11)),
                           .job = kJobs[0],
                           .sequence = static_cast<std::uint32_t>(random_.bits())};
    return packet(host(random_.below(kHosts)), header, Bytes(random_.below(40)));
  }

  // Frames of other hosts, and of no use.
  Input other() {
    const Address from = host(random_.below(kHosts)), to = host(random_.below(kHosts));
    Bytes frame = frame_of(from, to, Bytes(random_.below(200)));
    switch (random_.below(8)) {
      case 0: store_mac(frame.data(), 0xffffffffffff); break;
      case 1: store_mac(frame.data(), 0x020000000fff); break;  // who has never been seen
      case 2: store_mac(frame.data(), kSwitch.mac); break;     // an answer to a ping, say
      case 3: frame.resize(1 + random_.below(60)); break;
      case 4: frame = frame_of(from, kSwitch, Bytes(random_.below(60))); break;
      case 5:
        frame.resize(one_of(4) ? kLongestFrame - 12 + random_.below(40) : frame.size());
        break;
      case 6:
        frame =
            frame_of(from, kSwitch, Bytes(one_of(4) ? kLongestFrame - 52 + random_.below(40) : 0));
        break;
      default: break;
    }
    for (std::size_t i = 42; i < frame.size(); ++i) {
      frame[i] = static_cast<std::byte>(random_.bits());
    }
    return {from.port, frame};
  }

  void spoil(Bytes& frame) {
    const std::size_t at =
        random_.below(one_of(2) ? frame.size() : std::min<std::size_t>(frame.size(), 80));
    switch (random_.below(6)) {
      case 0: frame.resize(at + 1); break;
      case 1: frame.insert(frame.end(), random_.below(9), std::byte{7}); break;
      case 2:
        if (frame.size() <= kDatagramAt) break;
        frame.resize(std::max(at, kDatagramAt));
        complete_frame(frame);
        break;
      case 3:  // of Ethernet, IPv4 or UDP, with a sum that is right
        if (frame.size() <= kDatagramAt) break;
        flip(frame[random_.below(kDatagramAt)]);
        complete_sum(frame);
        break;
      default: flip(frame[at]); break;
    }
  }

  void flip(std::byte& byte) { byte ^= static_cast<std::byte>(1U << random_.below(8)); }

  std::uint32_t first_;
  Operands random_;
  std::vector<Input> history_;
};

}  // namespace carillon::rtl
