// SPDX-License-Identifier: Apache-2.0
//
// Hosts whose switch goes away at any moment: each call ends on each host with the same bits that
// the switch would have given, in place, too, on networks that lose, repeat and overtake.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "support/switch_net.h"
#include "switch/protocol/arithmetic.h"
#include "transport/aggregate/member.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint32_t kJob = 7;
constexpr Job kQuota = {.nonce = 99, .groups = 8, .memory_bytes = 64 << 20};
constexpr Endpoint kSwitch = {0x0a000002, 1};
constexpr std::size_t kOperandBytes = 64;
constexpr std::uint16_t kWindow = 4;

Endpoint host_at(std::size_t host) { return {0x0a000001, static_cast<std::uint16_t>(1000 + host)}; }

using Vector = std::vector<float>;

float value_of(std::size_t host, std::size_t call, std::size_t i) {
  return static_cast<float>(host + 1) * 1e-3F + static_cast<float>(i % 17) * 1e4F +
         static_cast<float>(call * 31 + i) / 7.0F;
}

// As one switch combines them.
Vector expected(std::size_t hosts, std::size_t call, std::size_t count) {
  std::vector<Vector> all(hosts, Vector(count));
  std::vector<std::byte*> ports;
  for (std::size_t host = 0; host < hosts; ++host) {
    for (std::size_t i = 0; i < count; ++i) all[host][i] = value_of(host, call, i);
    ports.push_back(reinterpret_cast<std::byte*>(all[host].data()));
  }
  Vector result(count);
  std::memcpy(result.data(), combine_ports(Op::kSum, Type::kFloat32, ports, count), count * 4);
  return result;
}

class Team {
 public:
  Team(std::size_t hosts, const NetFaults& faults, std::uint64_t seed) : net_(seed, faults) {
    Switch& one = net_.add_switch(kSwitch, {.administrator = kAdministrator});
    SwitchNet::Port nowhere(net_, {1, 1});
    std::vector<Endpoint> at;
    for (std::size_t host = 0; host < hosts; ++host) at.push_back(host_at(host));
    // Straight to the switch: what the network does to requests is another test's.
    Requests jobs(kAdministrator, 1, {});
    TreeControl tree(kJob, job_key(kAdministrator, kJob, kQuota.nonce), 1, {});
    Direct direct(one, [&](std::span<const std::byte> answer) {
      if (!jobs.take(kSwitch, answer)) (void)tree.take(kSwitch, answer);
    });
    jobs.start({install_job(kSwitch, kJob, kQuota)}, 0);
    jobs.progress(0, direct);
    tree.build({.switches = {{.at = kSwitch, .parent = {}, .children = at}},
                .window = kWindow,
                .operand_bytes = kOperandBytes},
               0);
    tree.progress(0, direct);
    tree.progress(0, direct);
    EXPECT_TRUE(jobs.status().ok() && tree.status().ok() && tree.done());
    for (std::size_t host = 0; host < hosts; ++host) {
      Hosts hosts_there = {.at = at, .places = {}, .own = static_cast<std::uint16_t>(host)};
      members_.push_back(
          std::make_unique<Member>(StreamConfig{.job = kJob,
                                                .group = tree.group(),
                                                .key = job_key(kAdministrator, kJob, kQuota.nonce),
                                                .child = static_cast<std::uint16_t>(host),
                                                .window = kWindow,
                                                .operand_bytes = kOperandBytes,
                                                .path = {kSwitch},
                                                .times = {}},
                                   std::move(hosts_there)));
      net_.add_host(host_at(host),
                    [this, host](const Endpoint& from, std::span<const std::byte> datagram) {
                      SwitchNet::Port port(net_, host_at(host));
                      (void)members_[host]->take(from, datagram, net_.now_ns(), port);
                    });
    }
  }

  [[nodiscard]] std::size_t hosts() const { return members_.size(); }
  Member& member(std::size_t host) { return *members_[host]; }
  SwitchNet& net() { return net_; }
  void kill_switch() { net_.remove(kSwitch); }

  // One round of everybody's; what comes meanwhile.
  void step() {
    for (std::size_t host = 0; host < hosts(); ++host) {
      SwitchNet::Port port(net_, host_at(host));
      member(host).progress(net_.now_ns(), port);
    }
    const std::int64_t until = net_.now_ns() + 1'000'000;
    while (net_.step(until)) {
    }
  }

 private:
  class Direct final : public Output {
   public:
    using Take = std::function<void(std::span<const std::byte>)>;
    Direct(Switch& one, Take take) : switch_(one), take_(std::move(take)) {}
    void send(std::span<const Endpoint> to, std::span<const std::byte> datagram) override {
      if (to.front() == kSwitch) {
        switch_.receive({1, 1}, datagram, *this);
      } else {
        const std::vector<std::byte> answer(datagram.begin(), datagram.end());
        take_(answer);
      }
    }

   private:
    Switch& switch_;
    Take take_;
  };

  SwitchNet net_;
  std::vector<std::unique_ptr<Member>> members_;
};

// Each host makes its calls one after another, in place, and uses the memory again at once. The
// switch goes away after so many rounds.
void play(std::size_t hosts, const NetFaults& faults, std::uint64_t seed, std::size_t rounds) {
  constexpr std::size_t kCalls = 6;
  const std::size_t counts[] = {1, 2, 13, 100, 211, 400};
  Team team(hosts, faults, seed);
  std::vector<Vector> memory(hosts);
  std::vector<std::size_t> call(hosts);
  std::vector<Stream::Ticket> tickets(hosts);
  const auto post = [&](std::size_t host) {
    if (call[host] == kCalls) return;
    memory[host].resize(400);
    const std::size_t count = counts[(call[host] + seed) % kCalls];
    for (std::size_t i = 0; i < count; ++i) memory[host][i] = value_of(host, call[host], i);
    auto* const bytes = reinterpret_cast<std::byte*>(memory[host].data());
    tickets[host] = *team.member(host).post(
        {.op = Op::kSum, .type = Type::kFloat32, .input = bytes, .output = bytes, .count = count});
  };
  for (std::size_t host = 0; host < hosts; ++host) post(host);
  std::size_t finished = 0;
  for (std::size_t round = 0; finished < hosts; ++round) {
    ASSERT_LT(round, 100'000U) << "seed " << seed;
    if (round == rounds) team.kill_switch();
    team.step();
    for (std::size_t host = 0; host < hosts; ++host) {
      ASSERT_TRUE(team.member(host).status().ok()) << team.member(host).status().to_string();
      if (call[host] == kCalls || !team.member(host).done(tickets[host])) continue;
      const Vector right = expected(hosts, call[host], counts[(call[host] + seed) % kCalls]);
      ASSERT_EQ(std::memcmp(right.data(), memory[host].data(), right.size() * 4), 0)
          << "seed " << seed << " host " << host << " call " << call[host];
      std::fill(memory[host].begin(), memory[host].end(), -1.0F);
      ++call[host];
      finished += call[host] == kCalls ? 1 : 0;
      post(host);
    }
  }
}

TEST(SwitchFallback, ADeadSwitchChangesNoBit) {
  for (const std::size_t hosts : {2U, 3U, 5U, 8U, 13U}) {
    for (std::size_t rounds = 0; rounds < 12; ++rounds)
      play(hosts, {}, hosts * 100 + rounds, rounds);
  }
}

TEST(SwitchFallback, NeitherOnABadNetwork) {
  const NetFaults bad = {.lose = 0.1, .duplicate = 0.05, .reorder = 0.3};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) play(2 + seed % 6, bad, seed, seed % 40 * 3);
}

TEST(SwitchFallback, CallsThatDifferEndWithAnError) {
  Team team(3, {}, 5);
  team.kill_switch();
  Vector memory(8, 1.0F);
  auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
  for (std::size_t host = 0; host < 3; ++host) {
    ASSERT_TRUE(team.member(host).post({.op = host == 2 ? Op::kMax : Op::kSum,
                                        .type = Type::kFloat32,
                                        .input = bytes,
                                        .output = nullptr,
                                        .count = 8}));
  }
  const auto failed = [&] {
    for (std::size_t host = 0; host < 3; ++host) {
      if (team.member(host).status().code() == Code::kMismatch) return true;
    }
    return false;
  };
  for (int round = 0; round < 100'000 && !failed(); ++round) team.step();
  EXPECT_TRUE(failed());
}

class Nowhere final : public Output {
 public:
  void send(std::span<const Endpoint> /*to*/, std::span<const std::byte> /*datagram*/) override {}
};

// A host that says it lacks what nobody has sent yet, or what is long forgotten, ends the group.
TEST(FallBack, WhatNobodyHoldsIsNotSentAgain) {
  const SipKey key = job_key(kAdministrator, kJob, kQuota.nonce);
  for (const std::uint32_t lacks : {UINT32_MAX, UINT32_MAX - 2 * kWindow, UINT32_MAX / 2 + 2}) {
    Member member({.job = kJob,
                   .group = 1,
                   .key = key,
                   .child = 0,
                   .window = kWindow,
                   .operand_bytes = kOperandBytes,
                   .path = {kSwitch},
                   .times = {}},
                  {.at = {host_at(0), host_at(1)}, .places = {}, .own = 0});
    std::array<std::byte, kHeaderBytes> packet{};
    seal(key,
         {.version = kVersion,
          .kind = Kind::kFallBack,
          .job = kJob,
          .group = 1,
          .sequence = lacks,
          .child = 1},
         packet);
    Nowhere nowhere;
    EXPECT_TRUE(member.take(host_at(1), packet, 0, nowhere));
    EXPECT_EQ(member.status().code(), Code::kInternal) << lacks;
    member.progress(1, nowhere);
  }
}

}  // namespace
}  // namespace carillon::aggregate
