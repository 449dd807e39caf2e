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

#include "switch/switch_fuzz.h"

namespace carillon::aggregate {
namespace {

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
    return ask(job_key(kAdministrator, job, kNonce), build_group(job, shape, children, group), id);
  }
  void contribute(std::uint32_t group, std::uint32_t sequence, int child) {
    model.receive(host(child),
                  packet(key, two_int64(group, sequence, child), operand(sequence + child, -child)),
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
  EXPECT_EQ(Bytes(partial.begin() + kHeaderBytes, partial.end()), operand(2, -2));
  all.clear();
  bench.contribute(group, 0, 2);
  ASSERT_EQ(all.size(), 1U) << "the partial, again";
  EXPECT_EQ(all[0].datagram, partial);
  all.clear();

  Header header = two_int64(group, 0, 0);
  header.kind = Kind::kResult;
  header.child = static_cast<std::uint16_t>(kAllChildren);
  const Bytes result = packet(bench.key, header, operand(70, 80));
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
    const Header header = refusal_of(two_int64(group, sequence, child), reason);
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
    Header header = two_int64(group, 0, 1);
    change(header);
    bench.model.receive(from, packet(bench.key, header, payload), bench.sent);
    const Header refusal = bench.sent.only();
    EXPECT_EQ(refusal.kind, Kind::kRefuse);
    EXPECT_EQ(refusal.sequence, header.sequence);
    return refusal.reason;
  };
  const Bytes two = operand(1, 2);
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

// Parsed, counted once each, and memory within its bounds.
TEST(SwitchFuzz, EachPacketIsCountedOnce) {
  Bench bench({.jobs = 3, .groups = 8, .memory_bytes = 1 << 20});
  Fuzzer fuzzer([&](const Endpoint& from, const Bytes& datagram) {
    bench.model.receive(from, datagram, bench.sent);
    std::vector<Bytes> sent;
    for (Sent::One& one : bench.sent.all) sent.push_back(std::move(one.datagram));
    bench.sent.all.clear();
    return sent;
  });
  ASSERT_NO_FATAL_FAILURE(fuzzer.begin());
  const char* const wanted = std::getenv("CARILLON_TEST_FUZZ_PACKETS");
  const std::uint64_t packets = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 500'000;
  const std::uint64_t before = sum(bench.model.counters());
  for (std::uint64_t i = 0; i < packets; ++i) {
    ASSERT_NO_FATAL_FAILURE(fuzzer.next());
    if (fuzzer.below(5000) == 0) bench.model.pass_time(10);
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
