// SPDX-License-Identifier: Apache-2.0
//
// Requests and packets to one switch, and a fuzzer of these: packets of right senders, with fields
// that are changed and sealed again, or bytes that are just changed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "switch/model/switch.h"
#include "transport/aggregate/control.h"

namespace carillon::aggregate {

using Bytes = std::vector<std::byte>;
inline constexpr SipKey kAdministrator = {0x1122334455667788, 0x99aabbccddeeff00};
inline constexpr Endpoint kManager = {0x0a000001, 99};
inline constexpr Endpoint kParent = {0x0a000009, 27182};
inline constexpr std::uint64_t kNonce = 5;
inline constexpr Job kQuota = {.nonce = kNonce, .groups = 2, .memory_bytes = 1 << 20};
inline constexpr Tree kRoot = {.window = 2, .operand_bytes = 16};
inline constexpr Tree kBelow = {.parent_ip = kParent.ip,
                                .parent_port = kParent.port,
                                .parent_child = 3,
                                .window = 2,
                                .operand_bytes = 16};

inline Endpoint host(int i) { return {0x0a000001, static_cast<std::uint16_t>(1000 + i)}; }

inline Bytes packet(const SipKey& key, Header header, const Bytes& payload = {}) {
  Bytes bytes(kHeaderBytes);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  header.version = kVersion;
  seal(key, header, bytes);
  return bytes;
}

inline Bytes packet(const SipKey& key, const Request& request, std::uint32_t id) {
  Header header = request.header;
  header.sequence = id;
  return packet(key, header, request.payload);
}

inline Bytes tree(const std::vector<Endpoint>& children, const Tree& tree) {
  Bytes payload(kTreeBytes + children.size() * kChildBytes);
  Tree with = tree;
  with.children = static_cast<std::uint16_t>(children.size());
  store(payload.data(), with);
  for (std::size_t i = 0; i < children.size(); ++i) {
    store(payload.data() + kTreeBytes + i * kChildBytes, Child{children[i].ip, children[i].port});
  }
  return payload;
}

inline Request build_group(std::uint32_t job, const Tree& shape,
                           const std::vector<Endpoint>& children, std::uint32_t group = 0) {
  return {.to = {},
          .header = {.kind = Kind::kBuildGroup, .job = job, .group = group},
          .payload = tree(children, shape)};
}

/// A contribution of two int64 of job 1.
inline Header two_int64(std::uint32_t group, std::uint32_t sequence, int child) {
  return {.kind = Kind::kContribute,
          .op = Op::kSum,
          .type = Type::kInt64,
          .count = 2,
          .job = 1,
          .group = group,
          .sequence = sequence,
          .slot = static_cast<std::uint16_t>(sequence % 4),
          .child = static_cast<std::uint16_t>(child)};
}

inline Bytes operand(std::int64_t a, std::int64_t b) {
  Bytes bytes(16);
  std::memcpy(bytes.data(), &a, 8);
  std::memcpy(bytes.data() + 8, &b, 8);
  return bytes;
}

class Fuzzer {
 public:
  /// Gives a packet to the switch, which has room for three jobs and eight groups; what it sends.
  using Receive = std::function<std::vector<Bytes>(const Endpoint& from, const Bytes& datagram)>;
  explicit Fuzzer(Receive receive) : receive_(std::move(receive)) {}

  /// Jobs and groups, and packets that are right.
  void begin() {
    for (const std::uint32_t job : {1U, 2U}) {
      ASSERT_EQ(ask(kAdministrator, install_job({}, job, kQuota), 1).reason, Reason::kNone);
    }
    root_ = ask(keys_[0], build_group(1, kRoot, {host(0), host(1)}), 7).group;
    const std::uint32_t below =
        ask(keys_[0], build_group(1, kBelow, {host(0), {}, host(2)}, 9), 8).group;
    for (const std::uint32_t group : {root_, below}) {
      for (const int child : {0, 1, 2, 3}) {
        for (const std::uint32_t sequence : {0, 1}) add_packets(group, child, sequence);
      }
    }
    for (std::uint32_t i = 0; i < 20; ++i) add_requests(i);
  }

  void next() {
    Bytes bytes = right_[below(right_.size())];
    Header near = load_header(bytes.data());
    if (near.kind <= Kind::kRefuse && below(50) != 0) {
      near.sequence = next_[near.group == root_ ? 0 : 1] + static_cast<std::uint32_t>(below(5)) - 2;
      near.slot = near.sequence % 4;
      seal(keys_[0], near, bytes);
    }
    for (std::uint64_t changes = below(4); changes > 0; --changes) {
      bytes[below(std::min<std::size_t>(bytes.size(), kHeaderTagAt + 4))] =
          static_cast<std::byte>(below(8) == 0 ? random_() : below(4));
    }
    if (below(16) == 0) {
      bytes.resize(below(2) == 0 ? below(bytes.size()) : bytes.size() + below(99));
    }
    if (below(4) != 0 && bytes.size() >= kHeaderBytes) {
      const Header header = load_header(bytes.data());
      seal(is_administrators(header) ? keys_[1] : keys_[header.job == 2 ? 2 : 0], header, bytes);
    }
    const std::array<Endpoint, 5> from = {host(0), host(1), host(2), kParent, kManager};
    const std::vector<Bytes> sent = receive_(from[below(from.size())], bytes);
    // A switch gives no more than a packet per child for one that comes.
    ASSERT_LE(sent.size(), 2U);
    for (const Bytes& one : sent) {
      const auto parsed = parse(one);
      ASSERT_TRUE(parsed);
      if (parsed->header.kind > Kind::kResult) continue;
      std::uint32_t& of_group = next_[parsed->header.group == root_ ? 0 : 1];
      of_group = std::max(of_group, parsed->header.sequence + 1);
    }
  }

  std::uint64_t below(std::uint64_t end) { return random_() % end; }

 private:
  Header ask(const SipKey& key, const Request& request, std::uint32_t id) {
    const std::vector<Bytes> sent = receive_(kManager, packet(key, request, id));
    EXPECT_EQ(sent.size(), 1U);
    return sent.empty() ? Header{} : load_header(sent[0].data());
  }

  void add_packets(std::uint32_t group, int child, std::uint32_t sequence) {
    Header header = two_int64(group, sequence, child);
    right_.push_back(packet(keys_[0], header, operand(child, sequence)));
    header.flags = kEmptyFlag;
    right_.push_back(packet(keys_[0], header));
    header.flags = 0;
    header.kind = Kind::kResult;
    header.child = static_cast<std::uint16_t>(kAllChildren);
    right_.push_back(packet(keys_[0], header, operand(child, sequence)));
    header.offset = 1;  // not what was sent up
    right_.push_back(packet(keys_[0], header, operand(child, sequence)));
    right_.push_back(
        packet(keys_[0], refusal_of(two_int64(group, sequence, child), Reason::kUnknownGroup)));
  }

  void add_requests(std::uint32_t i) {
    const std::uint32_t job = 1 + i % 2, group = i % 5;
    const SipKey& key = keys_[i % 2 * 2];
    right_.push_back(packet(key, build_group(job, kRoot, {host(0), host(1)}, group), i));
    right_.push_back(
        packet(key, {{}, {.kind = Kind::kFreeGroup, .job = job, .group = group}, {}}, i));
    right_.push_back(packet(kAdministrator, install_job({}, 1 + i % 5, kQuota), i));
    right_.push_back(packet(keys_[0], ask_limits({}, 1), i));
  }

  Receive receive_;
  std::array<SipKey, 3> keys_ = {job_key(kAdministrator, 1, kNonce), kAdministrator,
                                 job_key(kAdministrator, 2, kNonce)};
  std::mt19937_64 random_{1};
  std::vector<Bytes> right_;
  std::uint32_t root_ = 0;
  std::array<std::uint32_t, 2> next_{};  // sequences that the groups wait for, or about
};

}  // namespace carillon::aggregate
