// SPDX-License-Identifier: Apache-2.0
//
// One model switch: what it does with requests, with jobs that may not, and with millions of
// packets that are wrong in every way. With CARILLON_TEST_FUZZ_PACKETS, so many of these.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "switch/model/switch.h"
#include "transport/aggregate/control.h"

namespace carillon::aggregate {
namespace {

using Bytes = std::vector<std::byte>;
constexpr SipKey kAdministrator = {0x1122334455667788, 0x99aabbccddeeff00};
constexpr Endpoint kManager = {0x0a000001, 99};
constexpr Endpoint kParent = {0x0a000009, 27182};
constexpr std::uint64_t kNonce = 5;

Endpoint host(int i) { return {0x0a000001, static_cast<std::uint16_t>(1000 + i)}; }

// What comes out.
class Sent final : public Output {
 public:
  struct One {
    Endpoint to;
    Bytes datagram;
  };
  void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
    for (const Endpoint& one : to) all.push_back({one, {datagram.begin(), datagram.end()}});
  }
  // The only one; a refusal of nothing if there is another number.
  Header only() {
    EXPECT_EQ(all.size(), 1U);
    if (all.size() != 1) return {};
    const Header header = load_header(all[0].datagram.data());
    all.clear();
    return header;
  }
  std::vector<One> all;
};

Bytes packet(const SipKey& key, Header header, const Bytes& payload = {}) {
  Bytes bytes(kHeaderBytes + payload.size());
  std::copy(payload.begin(), payload.end(), bytes.begin() + kHeaderBytes);
  header.version = kVersion;
  seal(key, header, bytes);
  return bytes;
}

Bytes packet(const SipKey& key, const Request& request, std::uint32_t id) {
  Header header = request.header;
  header.sequence = id;
  return packet(key, header, request.payload);
}

Bytes tree(const std::vector<Endpoint>& children, const Tree& tree) {
  Bytes payload(kTreeBytes + children.size() * kChildBytes);
  Tree with = tree;
  with.children = static_cast<std::uint16_t>(children.size());
  store(payload.data(), with);
  for (std::size_t i = 0; i < children.size(); ++i) {
    store(payload.data() + kTreeBytes + i * kChildBytes, Child{children[i].ip, children[i].port});
  }
  return payload;
}

constexpr Tree kRoot = {.window = 2, .operand_bytes = 16};
constexpr Tree kBelow = {.parent_ip = kParent.ip,
                         .parent_port = kParent.port,
                         .parent_child = 3,
                         .window = 2,
                         .operand_bytes = 16};

class Bench {
 public:
  explicit Bench(SwitchConfig config = {}) : model(with_key(config)) {}

  Header ask(const SipKey& with, const Request& request, std::uint32_t id,
             const Endpoint& from = kManager) {
    model.receive(from, packet(with, request, id), sent);
    return sent.only();
  }
  Reason install(std::uint32_t job, const Job& quota) {
    return ask(kAdministrator, install_job({}, job, quota), 1).reason;
  }
  Header build(std::uint32_t job, const Tree& shape, const std::vector<Endpoint>& children,
               std::uint32_t id, std::uint32_t group = 0) {
    return ask(job_key(kAdministrator, job, kNonce),
               {.to = {},
                .header = {.kind = Kind::kBuildGroup, .job = job, .group = group},
                .payload = tree(children, shape)},
               id);
  }
  // Two int64.
  Header header(std::uint32_t group, std::uint32_t sequence, int child) const {
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
  static Bytes operand(std::int64_t a, std::int64_t b) {
    Bytes bytes(16);
    std::memcpy(bytes.data(), &a, 8);
    std::memcpy(bytes.data() + 8, &b, 8);
    return bytes;
  }
  void contribute(std::uint32_t group, std::uint32_t sequence, int child) {
    model.receive(host(child),
                  packet(key, header(group, sequence, child), operand(sequence + child, -child)),
                  sent);
  }

  SipKey key = job_key(kAdministrator, 1, kNonce);
  Switch model;
  Sent sent;

 private:
  static SwitchConfig with_key(SwitchConfig config) {
    config.administrator = kAdministrator;
    return config;
  }
};

constexpr Job kQuota = {.nonce = kNonce, .groups = 2, .memory_bytes = 1 << 20};

TEST(SwitchControl, JobsAreInstalledAndRemovedByTheAdministratorOnly) {
  Bench bench({.jobs = 1});
  bench.model.receive(kManager, packet({1, 2}, install_job({}, 1, kQuota), 1), bench.sent);
  EXPECT_EQ(bench.model.counters().bad_tag, 1U);
  EXPECT_EQ(bench.model.jobs(), 0U);
  EXPECT_EQ(bench.build(1, kRoot, {host(0)}, 1).reason, Reason::kUnknownJob);
  EXPECT_EQ(bench.model.counters().unknown_job, 1U);
  EXPECT_EQ(bench.install(1, kQuota), Reason::kNone);
  EXPECT_EQ(bench.install(1, kQuota), Reason::kNone) << "asked twice";
  EXPECT_EQ(bench.install(1, {.nonce = 6}), Reason::kJobDiffers);
  EXPECT_EQ(bench.install(2, kQuota), Reason::kNoRoom);
  EXPECT_EQ(bench.build(1, kRoot, {host(0)}, 1).reason, Reason::kNone);
  EXPECT_EQ(bench.ask(kAdministrator, remove_job({}, 1, 6), 2).reason, Reason::kJobDiffers);
  EXPECT_EQ(bench.ask(kAdministrator, remove_job({}, 1, kNonce), 3).kind, Kind::kJobRemoved);
  EXPECT_EQ(bench.model.jobs() + bench.model.groups() + bench.model.memory_bytes(), 0U);
}

TEST(SwitchControl, GroupsAreCheckedCountedAndFreed) {
  Bench bench({.number = 5, .groups = 3});
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  ASSERT_EQ(bench.install(2, {.nonce = kNonce, .groups = 9, .memory_bytes = 300}), Reason::kNone);
  const auto reason = [&](Tree shape, const std::vector<Endpoint>& children) {
    return bench.build(1, shape, children, 1).reason;
  };
  const auto with = [](auto change) {
    Tree shape = kRoot;
    change(shape);
    return shape;
  };
  EXPECT_EQ(reason(kRoot, {}), Reason::kBadTree);
  EXPECT_EQ(reason(kRoot, {{}, {}}), Reason::kBadTree) << "nobody is there";
  EXPECT_EQ(reason(kRoot, {{0x0a000001, 0}}), Reason::kBadTree);
  EXPECT_EQ(reason(kRoot, {{0xe0000001, 5}}), Reason::kBadTree) << "a multicast address";
  EXPECT_EQ(reason(with([](Tree& t) { t.window = 0; }), {host(0)}), Reason::kBadTree);
  EXPECT_EQ(reason(with([](Tree& t) { t.window = 3; }), {host(0)}), Reason::kBadTree);
  EXPECT_EQ(reason(with([](Tree& t) { t.window = 2048; }), {host(0)}), Reason::kBadTree);
  EXPECT_EQ(reason(with([](Tree& t) { t.operand_bytes = 12; }), {host(0)}), Reason::kBadTree);
  EXPECT_EQ(reason(with([](Tree& t) { t.operand_bytes = 8200; }), {host(0)}), Reason::kBadTree);
  EXPECT_EQ(reason(with([](Tree& t) { t.parent_ip = 1; }), {host(0)}), Reason::kBadTree);
  EXPECT_EQ(bench.model.groups(), 0U);

  const Header first = bench.build(1, kRoot, {host(0), host(1)}, 7);
  EXPECT_EQ(first.kind, Kind::kGroupBuilt);
  EXPECT_EQ(first.group, 5U << kGroupCounterBits | 1);
  EXPECT_EQ(bench.build(1, kRoot, {host(0), host(1)}, 7).group, first.group) << "asked twice";
  EXPECT_EQ(bench.build(1, kRoot, {host(0)}, 7).reason, Reason::kGroupDiffers);
  EXPECT_EQ(bench.build(1, kBelow, {host(0)}, 8, 77).group, 77U) << "another switch allotted it";
  EXPECT_EQ(bench.build(1, kBelow, {host(1)}, 8, 77).reason, Reason::kGroupDiffers);
  EXPECT_EQ(bench.build(1, kRoot, {host(0)}, 9).reason, Reason::kQuota);
  EXPECT_EQ(bench.build(2, kRoot, {host(0), host(1)}, 9).reason, Reason::kQuota) << "memory";
  EXPECT_EQ(bench.build(2, kRoot, {host(0)}, 9).reason, Reason::kNone);
  ASSERT_EQ(bench.install(2, kQuota), Reason::kNone);
  EXPECT_EQ(bench.build(2, kRoot, {host(0)}, 10).reason, Reason::kNoRoom) << "three in all";

  const auto free_it = [&](std::uint32_t group) {
    return bench
        .ask(bench.key,
             {.to = {},
              .header = {.kind = Kind::kFreeGroup, .job = 1, .group = group},
              .payload = {}},
             11)
        .kind;
  };
  EXPECT_EQ(free_it(first.group), Kind::kGroupFreed);
  EXPECT_EQ(free_it(first.group), Kind::kGroupFreed) << "asked twice";
  EXPECT_EQ(bench.model.groups(), 2U);
  EXPECT_EQ(bench.build(1, kRoot, {host(0)}, 12).group, 5U << kGroupCounterBits | 2)
      << "no id comes twice";
}

TEST(SwitchControl, SaysItsLimits) {
  Bench bench({.number = 5, .groups = 3, .memory_bytes = 5000});
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  ASSERT_EQ(bench.build(1, kRoot, {host(0)}, 7).reason, Reason::kNone);
  bench.model.receive(kManager, packet(bench.key, ask_limits({}, 1), 3), bench.sent);
  ASSERT_EQ(bench.sent.all.size(), 1U);
  const Limits limits = load_limits(bench.sent.all[0].datagram.data() + kHeaderBytes);
  EXPECT_EQ(limits.number, 5);
  EXPECT_EQ(limits.children, kMaxChildren);
  EXPECT_EQ(limits.groups, 3U);
  EXPECT_EQ(limits.free_groups, 2U);
  EXPECT_EQ(limits.free_memory_bytes, 5000 - 4 * (kHeaderBytes + 2 * 16));
}

TEST(SwitchControl, GroupsThatNobodyUsesAreFreedAndTheirJobsForgotten) {
  Bench bench;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  const std::uint32_t busy = bench.build(1, kRoot, {host(0)}, 7).group;
  (void)bench.build(1, kRoot, {host(0)}, 8);
  for (std::uint32_t i = 0; i < 5; ++i) {
    bench.model.pass_time(3);
    bench.contribute(busy, i, 0);
  }
  EXPECT_EQ(bench.model.groups(), 1U);
  EXPECT_EQ(bench.model.counters().idle_groups, 1U);
  for (int i = 0; i < 5; ++i) bench.model.pass_time(3);
  EXPECT_EQ(bench.model.groups(), 0U);
  EXPECT_EQ(bench.model.jobs(), 1U) << "a while for its next group";
  for (int i = 0; i < 5; ++i) bench.model.pass_time(3);
  EXPECT_EQ(bench.model.jobs(), 0U);
}

TEST(SwitchControl, AGroupWhoseHostsAskIsNotIdle) {
  Bench bench;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  const std::uint32_t kept = bench.build(1, kRoot, {host(0)}, 7).group;
  (void)bench.build(1, kRoot, {host(0)}, 8);
  for (std::uint32_t i = 0; i < 5; ++i) {
    bench.model.pass_time(3);
    const Header ask = {.kind = Kind::kAskLimits, .job = 1, .group = kept};
    EXPECT_EQ(bench.ask(bench.key, {{}, ask, {}}, i, host(0)).kind, Kind::kLimits);
  }
  EXPECT_EQ(bench.model.groups(), 1U);
  bench.contribute(kept, 0, 0);
  EXPECT_EQ(bench.sent.only().kind, Kind::kResult);
}

TEST(SwitchSlots, GoTheirWayAndSendAgainWhatIsThere) {
  Bench bench;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  const std::uint32_t group = bench.build(1, kBelow, {host(0), {}, host(2)}, 7, 9).group;
  auto& all = bench.sent.all;
  const auto& counters = bench.model.counters();
  bench.contribute(group, 0, 0);
  bench.contribute(group, 0, 0);
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(counters.duplicates, 1U);
  bench.contribute(group, 0, 2);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].to, kParent);
  const Bytes partial = all[0].datagram;
  EXPECT_EQ(load_header(partial.data()).child, 3);
  EXPECT_TRUE(is_authentic(bench.key, partial));
  EXPECT_EQ(Bytes(partial.begin() + kHeaderBytes, partial.end()), Bench::operand(2, -2));
  all.clear();
  bench.contribute(group, 0, 2);
  ASSERT_EQ(all.size(), 1U) << "the partial, again";
  EXPECT_EQ(all[0].datagram, partial);
  all.clear();

  Header header = bench.header(group, 0, 0);
  header.kind = Kind::kResult;
  header.child = static_cast<std::uint16_t>(kAllChildren);
  const Bytes result = packet(bench.key, header, Bench::operand(70, 80));
  bench.model.receive(host(0), result, bench.sent);
  EXPECT_EQ(counters.wrong_source, 1U);
  EXPECT_TRUE(all.empty());
  bench.model.receive(kParent, result, bench.sent);
  ASSERT_EQ(all.size(), 2U) << "to the ports that are there";
  EXPECT_EQ(all[0].datagram, result);
  EXPECT_EQ(all[1].to, host(2));
  all.clear();
  bench.model.receive(kParent, result, bench.sent);
  EXPECT_TRUE(all.empty()) << "a second result is not sent on";
  bench.contribute(group, 0, 2);
  ASSERT_EQ(all.size(), 1U) << "the result, to who asks";
  EXPECT_EQ(all[0].to, host(2));
  EXPECT_EQ(all[0].datagram, result);
}

TEST(SwitchSlots, PassDownWhatTheParentRefuses) {
  Bench bench;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  const std::uint32_t group = bench.build(1, kBelow, {host(0), {}, host(2)}, 7, 9).group;
  const auto& counters = bench.model.counters();
  bench.contribute(group, 0, 0);
  bench.contribute(group, 0, 2);
  const Header partial = bench.sent.only();
  int child = 3;
  const auto refuse = [&](std::uint32_t sequence, Reason reason, const SipKey& with) {
    const Header header = refusal_of(bench.header(group, sequence, child), reason);
    bench.model.receive(kParent, packet(with, header), bench.sent);
  };
  refuse(1, Reason::kUnknownGroup, bench.key);
  EXPECT_EQ(counters.stale, 1U) << "of what was not sent up";
  refuse(0, Reason::kUnknownGroup, {1, 2});
  EXPECT_EQ(counters.bad_tag, 1U);
  refuse(0, Reason::kUnknownJob, {1, 2});  // who does not know the job has no key
  EXPECT_EQ(counters.bad_tag, 2U) << "but has seen the partial's tag";
  const auto echo = [&](Reason reason, std::uint64_t tag) {
    Header header = refusal_of(partial, reason);
    header.tag = tag;
    Bytes bytes(kHeaderBytes);
    store(bytes.data(), header);
    bench.model.receive(kParent, bytes, bench.sent);
  };
  echo(Reason::kUnknownJob, 0);
  echo(Reason::kUnknownJob, partial.tag ^ 1);
  echo(Reason::kUnknownGroup, partial.tag);
  EXPECT_EQ(counters.bad_tag, 5U);
  EXPECT_TRUE(bench.sent.all.empty());
  echo(Reason::kUnknownJob, partial.tag);
  refuse(0, Reason::kUnknownGroup, bench.key);
  child = kAllChildren;  // the parent passes down what its own parent refused
  refuse(0, Reason::kUnknownJob, bench.key);
  EXPECT_EQ(counters.refusals, 3U);
  ASSERT_EQ(bench.sent.all.size(), 6U);
  for (const Sent::One& one : bench.sent.all) {
    EXPECT_TRUE(is_authentic(bench.key, one.datagram));
    EXPECT_EQ(load_header(one.datagram.data()).child, kAllChildren);
  }
  EXPECT_EQ(bench.sent.all[0].to, host(0));
  EXPECT_EQ(bench.sent.all[5].to, host(2));
}

TEST(SwitchSlots, AResultIsKeptUntilAllHaveIt) {
  Bench bench;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  const std::uint32_t group = bench.build(1, kRoot, {host(0), host(1)}, 7).group;
  const auto& counters = bench.model.counters();
  bench.contribute(group, 4, 0);  // window 2: the slot of 0
  EXPECT_EQ(counters.premature, 1U);
  bench.contribute(group, static_cast<std::uint32_t>(-4), 0);
  EXPECT_EQ(counters.premature, 2U) << "there is no round before the first";
  for (std::uint32_t sequence = 0; sequence < 4; ++sequence) {
    bench.contribute(group, sequence, 0);
    bench.contribute(group, sequence, 1);
  }
  bench.sent.all.clear();
  bench.contribute(group, 0, 1);
  EXPECT_EQ(bench.sent.all.size(), 1U);
  bench.contribute(group, 4, 0);
  bench.contribute(group, 0, 1);
  EXPECT_EQ(counters.stale, 1U);
  EXPECT_EQ(counters.resent_results, 1U);
}

TEST(SwitchSlots, WhatDoesNotFitIsRefused) {
  Bench bench;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  const std::uint32_t group = bench.build(1, kRoot, {host(0), host(1)}, 7).group;
  bench.contribute(group, 0, 0);
  const auto reason = [&](auto change, const Bytes& payload, const Endpoint& from = host(1)) {
    Header header = bench.header(group, 0, 1);
    change(header);
    bench.model.receive(from, packet(bench.key, header, payload), bench.sent);
    const Header refusal = bench.sent.only();
    EXPECT_EQ(refusal.kind, Kind::kRefuse);
    EXPECT_EQ(refusal.sequence, header.sequence);
    return refusal.reason;
  };
  const Bytes two = Bench::operand(1, 2);
  EXPECT_EQ(reason([](Header& h) { h.op = Op::kMin; }, two), Reason::kMismatch);
  EXPECT_EQ(reason([](Header& h) { h.type = Type::kFloat64; }, two), Reason::kMismatch);
  EXPECT_EQ(reason([](Header& h) { h.count = 1; }, Bytes(8)), Reason::kMismatch);
  EXPECT_EQ(reason([](Header& h) { h.offset = 1; }, two), Reason::kMismatch);
  EXPECT_EQ(reason([](Header& h) { h.flags = kLastFlag; }, two), Reason::kMismatch);
  EXPECT_EQ(reason([](Header& h) { h.slot = 1; }, two), Reason::kMismatch);
  EXPECT_EQ(reason([](Header& h) { h.count = 3; }, Bytes(24)), Reason::kTooLarge);
  EXPECT_EQ(reason([](Header& h) { h.group = 5; }, two), Reason::kUnknownGroup);
  EXPECT_EQ(reason([](Header& h) { h.job = 2; }, two), Reason::kUnknownJob);
  bench.contribute(group, 0, 1);
  EXPECT_EQ(bench.sent.all.size(), 2U) << "and the right one is taken";
}

// ---- what is wrong

std::uint64_t sum(const Counters& counters) {
  std::uint64_t all = 0;
  visit_counters(counters, [&](const char*, std::uint64_t value) { all += value; });
  return all - counters.idle_groups;
}

// Packets of right senders, with fields that are changed and sealed again, or bytes that are just
// changed: parsed, counted once each, and memory within its bounds.
TEST(SwitchFuzz, EachPacketIsCountedOnce) {
  Bench bench({.jobs = 3, .groups = 8, .memory_bytes = 1 << 20});
  std::mt19937_64 random(1);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  const std::array<SipKey, 3> keys = {bench.key, kAdministrator,
                                      job_key(kAdministrator, 2, kNonce)};
  std::vector<Bytes> right;
  ASSERT_EQ(bench.install(1, kQuota), Reason::kNone);
  ASSERT_EQ(bench.install(2, kQuota), Reason::kNone);
  const std::uint32_t root = bench.build(1, kRoot, {host(0), host(1)}, 7).group;
  const std::uint32_t below = bench.build(1, kBelow, {host(0), {}, host(2)}, 8, 9).group;
  for (const std::uint32_t group : {root, below}) {
    for (const int child : {0, 1, 2, 3}) {
      for (const std::uint32_t sequence : {0, 1}) {
        Header header = bench.header(group, sequence, child);
        right.push_back(packet(bench.key, header, Bench::operand(child, sequence)));
        header.flags = kEmptyFlag;
        right.push_back(packet(bench.key, header));
        header.flags = 0;
        header.kind = Kind::kResult;
        header.child = static_cast<std::uint16_t>(kAllChildren);
        right.push_back(packet(bench.key, header, Bench::operand(child, sequence)));
        header.offset = 1;  // not what was sent up
        right.push_back(packet(bench.key, header, Bench::operand(child, sequence)));
        right.push_back(packet(
            bench.key, refusal_of(bench.header(group, sequence, child), Reason::kUnknownGroup)));
      }
    }
  }
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Header build = {.kind = Kind::kBuildGroup, .job = 1 + i % 2, .group = i % 5};
    right.push_back(packet(keys[i % 2 * 2], {{}, build, tree({host(0), host(1)}, kRoot)}, i));
    right.push_back(packet(keys[i % 2 * 2],
                           {{}, {.kind = Kind::kFreeGroup, .job = 1 + i % 2, .group = i % 5}, {}},
                           i));
    right.push_back(packet(kAdministrator, install_job({}, 1 + i % 5, kQuota), i));
    right.push_back(packet(bench.key, ask_limits({}, 1), i));
  }
  const std::array<Endpoint, 5> from = {host(0), host(1), host(2), kParent, kManager};
  const char* const wanted = std::getenv("CARILLON_TEST_FUZZ_PACKETS");
  const std::uint64_t packets = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 500'000;
  std::array<std::uint32_t, 2> next{};  // sequences that the groups wait for, or about
  const std::uint64_t before = sum(bench.model.counters());
  for (std::uint64_t i = 0; i < packets; ++i) {
    Bytes bytes = right[draw(right.size())];
    Header near = load_header(bytes.data());
    if (near.kind <= Kind::kRefuse && draw(50) != 0) {
      near.sequence = next[near.group == root ? 0 : 1] + static_cast<std::uint32_t>(draw(5)) - 2;
      near.slot = near.sequence % 4;
      seal(bench.key, near, bytes);
    }
    for (std::uint64_t changes = draw(4); changes > 0; --changes) {
      bytes[draw(std::min<std::size_t>(bytes.size(), kHeaderTagAt + 4))] =
          static_cast<std::byte>(draw(8) == 0 ? random() : draw(4));
    }
    if (draw(16) == 0) bytes.resize(draw(2) == 0 ? draw(bytes.size()) : bytes.size() + draw(99));
    if (draw(4) != 0 && bytes.size() >= kHeaderBytes) {
      const Header header = load_header(bytes.data());
      seal(is_administrators(header) ? keys[1] : keys[header.job == 2 ? 2 : 0], header, bytes);
    }
    bench.model.receive(from[draw(from.size())], bytes, bench.sent);
    // A switch gives no more than a packet per child for one that comes.
    ASSERT_LE(bench.sent.all.size(), 2U);
    for (const Sent::One& one : bench.sent.all) {
      const auto sent = parse(one.datagram);
      ASSERT_TRUE(sent);
      if (sent->header.kind > Kind::kResult) continue;
      std::uint32_t& of_group = next[sent->header.group == root ? 0 : 1];
      of_group = std::max(of_group, sent->header.sequence + 1);
    }
    bench.sent.all.clear();
    if (draw(5000) == 0) bench.model.pass_time(10);
  }
  EXPECT_EQ(sum(bench.model.counters()) - before, packets);
  EXPECT_LE(bench.model.groups(), 8U);
  EXPECT_LE(bench.model.memory_bytes(), 1U << 20);
  visit_counters(bench.model.counters(), [](const char* name, std::uint64_t value) {
    EXPECT_GT(value, 0U) << name << ": the fuzzer never gets there";
  });
}

}  // namespace
}  // namespace carillon::aggregate
