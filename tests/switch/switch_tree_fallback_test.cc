// SPDX-License-Identifier: Apache-2.0
//
// Trees of switches made of the ways up that hosts have, and what becomes of calls when any switch
// of the tree goes away at any moment, and comes back with nothing or not: each call ends on each
// host with the bits of the tree's order, in place, on networks that lose, repeat and overtake.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/switch_team.h"
#include "transport/aggregate/member.h"
#include "transport/aggregate/tree.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint16_t kOperandBytes = 64, kWindow = 4;
constexpr std::size_t kCalls = 6, kMost = 400;
constexpr std::array<std::size_t, kCalls> kCounts = {1, 2, 13, 100, 211, kMost};
constexpr ControlTimes kTimes = {.retry_ns = 50'000'000, .give_up_ns = 50'000'000'000};

using Vector = std::vector<float>;
using Ways = std::vector<WayUp>;

WayUp way(std::initializer_list<std::size_t> switches) {
  WayUp up = {.at = {}, .levels = static_cast<std::uint32_t>(switches.size())};
  std::ranges::transform(switches, up.at.begin(), [](std::size_t i) { return switch_at(i); });
  return up;
}

std::vector<Endpoint> hosts_of(const Ways& ways) {
  std::vector<Endpoint> hosts;
  for (std::size_t i = 0; i < ways.size(); ++i) hosts.push_back(host_at(static_cast<int>(i)));
  return hosts;
}

// By the switches of which there are some: 0 is the root, and 9 between it and 1.
const std::vector<Ways>& shapes() {
  static const std::vector<Ways> all = {
      {way({1, 0}), way({1, 0}), way({2, 0}), way({2, 0}), way({2, 0})},
      {way({1, 0}), way({1, 0}), way({1, 0}), way({2, 0}), way({3, 0}), way({3, 0})},
      {way({3, 0}), way({1, 0}), way({3, 0}), way({2, 0}), way({1, 0}), way({3, 0}), way({2, 0})},
      {way({1, 9, 0}), way({1, 9, 0}), way({1, 9, 0}), way({9, 0}), way({2, 0}), way({0})}};
  return all;
}

float value_at(std::size_t host, std::size_t call, std::size_t i) {
  return static_cast<float>(host + 1) * 1e-3F + static_cast<float>(i % 17) * 1e4F +
         static_cast<float>(call * 31 + i) / 7.0F;
}

// A switch and what is below it, by the definition of the tree.
Operand<float> of_switch(const HostTree& tree, std::size_t index, std::size_t call, std::size_t i) {
  std::vector<Operand<float>> ports;
  for (const Endpoint& child : tree.switches[index].children) {
    ports.emplace_back();
    if (child.ip == host_at(0).ip) ports.back() = value_at(child.port - 1000U, call, i);
    for (std::size_t j = index + 1; j < tree.switches.size(); ++j) {
      if (tree.switches[j].at == child) ports.back() = of_switch(tree, j, call, i);
    }
  }
  return combined<float>(Op::kSum, ports, 0, 64);
}

class Members {
 public:
  Members(const Ways& ways, const NetFaults& faults, std::uint64_t seed)
      : net_(seed, faults), tree_(tree_of(hosts_of(ways), ways).value()) {
    for (const TreeSwitch& one : tree_.switches) start(one.at);
    const std::uint32_t group = build();
    const std::vector<Endpoint> hosts = hosts_of(ways);
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const auto up = ways[host].switches();
      const StreamConfig config = {.job = kJob,
                                   .group = group,
                                   .key = job_key(kAdministrator, kJob, kQuota.nonce),
                                   .child = tree_.ports[host],
                                   .window = kWindow,
                                   .operand_bytes = kOperandBytes,
                                   .path = {up.begin(), up.end()},
                                   .times = {}};
      members_.push_back(std::make_unique<Member>(
          config,
          Hosts{.at = hosts, .places = tree_.places, .own = static_cast<std::uint16_t>(host)}));
      net_.add_host(hosts[host],
                    [this, host](const Endpoint& from, std::span<const std::byte> datagram) {
                      SwitchNet::Port port(net_, host_at(static_cast<int>(host)));
                      (void)members_[host]->take(from, datagram, net_.now_ns(), port);
                    });
    }
  }

  [[nodiscard]] std::size_t hosts() const { return members_.size(); }
  Member& member(std::size_t host) { return *members_[host]; }
  [[nodiscard]] const HostTree& tree() const { return tree_; }
  void kill(std::size_t index) { net_.remove(tree_.switches[index].at); }
  void restart(std::size_t index) { start(tree_.switches[index].at); }

  void step() {
    for (std::size_t host = 0; host < hosts(); ++host) {
      SwitchNet::Port port(net_, host_at(static_cast<int>(host)));
      member(host).progress(net_.now_ns(), port);
    }
    const std::int64_t until = net_.now_ns() + 1'000'000;
    while (net_.step(until)) {
    }
  }

 private:
  void start(const Endpoint& at) {
    net_.add_switch(at, {.administrator = kAdministrator, .number = at.port});
  }
  template <class Control>
  void settle(Control& control) {
    const Endpoint manager = {0x0a000003, 1};
    net_.add_host(manager, [&](const Endpoint& from, std::span<const std::byte> datagram) {
      (void)control.take(from, datagram);
    });
    SwitchNet::Port port(net_, manager);
    while (!control.done()) {
      control.progress(net_.now_ns(), port);
      const std::int64_t until = net_.now_ns() + 1'000'000;
      while (net_.step(until)) {
      }
    }
    EXPECT_TRUE(control.status().ok()) << control.status().to_string();
    net_.remove(manager);
  }
  std::uint32_t build() {
    Requests jobs(kAdministrator, 1, kTimes);
    std::vector<Request> requests;
    for (const TreeSwitch& one : tree_.switches) {
      requests.push_back(install_job(one.at, kJob, kQuota));
    }
    jobs.start(requests, net_.now_ns());
    settle(jobs);
    TreeControl control(kJob, job_key(kAdministrator, kJob, kQuota.nonce), 1, kTimes);
    control.build({.switches = tree_.switches, .window = kWindow, .operand_bytes = kOperandBytes},
                  net_.now_ns());
    settle(control);
    return control.group();
  }

  SwitchNet net_;
  HostTree tree_;
  std::vector<std::unique_ptr<Member>> members_;
};

struct Accident {
  std::size_t victim = 0;  // a switch; more than there are: none
  std::size_t round = 0;
  bool comes_back = false;  // with nothing of what it knew, five rounds later
};

// Each host makes its calls one after another, and uses the memory again at once.
void play(const Ways& ways, const NetFaults& faults, std::uint64_t seed, const Accident& accident) {
  SCOPED_TRACE("seed " + std::to_string(seed) + " victim " + std::to_string(accident.victim) +
               " round " + std::to_string(accident.round));
  Members team(ways, faults, seed);
  const bool dies = accident.victim < team.tree().switches.size();
  std::vector<Vector> memory(team.hosts(), Vector(kMost));
  std::vector<std::size_t> call(team.hosts());
  std::vector<Stream::Ticket> tickets(team.hosts());
  const auto post = [&](std::size_t host) {
    const std::size_t count = kCounts[call[host]];
    for (std::size_t i = 0; i < count; ++i) memory[host][i] = value_at(host, call[host], i);
    auto* const bytes = reinterpret_cast<std::byte*>(memory[host].data());
    tickets[host] = *team.member(host).post(
        {.op = Op::kSum, .type = Type::kFloat32, .input = bytes, .output = bytes, .count = count});
  };
  for (std::size_t host = 0; host < team.hosts(); ++host) post(host);
  std::size_t finished = 0;
  for (std::size_t round = 0; finished < team.hosts(); ++round) {
    ASSERT_LT(round, 100'000U);
    if (dies && round == accident.round) team.kill(accident.victim);
    if (dies && accident.comes_back && round == accident.round + 5) team.restart(accident.victim);
    team.step();
    for (std::size_t host = 0; host < team.hosts(); ++host) {
      ASSERT_TRUE(team.member(host).status().ok()) << team.member(host).status().to_string();
      if (call[host] == kCalls || !team.member(host).done(tickets[host])) continue;
      for (std::size_t i = 0; i < kCounts[call[host]]; ++i) {
        const float right = *of_switch(team.tree(), 0, call[host], i);
        ASSERT_EQ(std::memcmp(&right, &memory[host][i], sizeof right), 0)
            << "host " << host << " call " << call[host] << " element " << i;
      }
      std::ranges::fill(memory[host], -1.0F);
      if (++call[host] < kCalls) {
        post(host);
      } else {
        ++finished;
      }
    }
  }
  if (!dies) {
    for (std::size_t host = 0; host < team.hosts(); ++host) {
      EXPECT_TRUE(team.member(host).fall_back_reason().ok());
    }
  }
}

constexpr std::size_t kNobody = 99;

TEST(SwitchTreeFallback, NothingHappensWhereNoSwitchDies) {
  for (const Ways& ways : shapes()) play(ways, {}, 1, {.victim = kNobody});
}

TEST(SwitchTreeFallback, ADeadSwitchChangesNoBit) {
  std::uint64_t seed = 1;
  for (const Ways& ways : shapes()) {
    const std::size_t switches = tree_of(hosts_of(ways), ways).value().switches.size();
    for (std::size_t victim = 0; victim < switches; ++victim) {
      for (std::size_t round = 0; round < 10; ++round) {
        play(ways, {}, seed++, {.victim = victim, .round = round, .comes_back = round % 3 == 1});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(SwitchTreeFallback, NeitherOnABadNetwork) {
  std::uint64_t seed = 1;
  for (const Ways& ways : shapes()) {
    const std::size_t switches = tree_of(hosts_of(ways), ways).value().switches.size();
    for (std::size_t i = 0; i < 5 * switches; ++i) {
      play(ways, kBad, seed++,
           {.victim = i % switches, .round = i * 7 % 100, .comes_back = i % 2 == 1});
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

std::string what_is_wrong(const Ways& ways) {
  return std::string(tree_of(hosts_of(ways), ways).status().message());
}

TEST(SwitchTreeOfWays, PortsAreInTheOrderOfHosts) {
  const Ways ways = {way({2, 0}), way({1, 0}), way({2, 0}), way({0}), way({2, 0})};
  const auto tree = tree_of(hosts_of(ways), ways);
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  EXPECT_EQ(tree.value().switches.size(), 3U);
  EXPECT_EQ(tree.value().switches[0].children,
            (std::vector<Endpoint>{switch_at(2), switch_at(1), host_at(3)}));
  EXPECT_EQ(tree.value().ports, (std::vector<std::uint16_t>{0, 0, 1, 2, 2}));
  // Three ports of switch 2 are as wide as four.
  EXPECT_EQ(tree.value().places, (std::vector<std::uint32_t>{0, 4, 1, 8, 2}));
}

TEST(SwitchTreeOfWays, OneSwitchHasItsHostsInTheirOrder) {
  const Ways ways(5, way({3}));
  const auto tree = tree_of(hosts_of(ways), ways);
  ASSERT_TRUE(tree.ok());
  EXPECT_EQ(tree.value().ports, (std::vector<std::uint16_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(tree.value().places, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
}

TEST(SwitchTreeOfWays, WhatIsNoTreeIsSaid) {
  EXPECT_NE(what_is_wrong({way({1, 0}), way({2})}).find("are their root"), std::string::npos);
  EXPECT_NE(what_is_wrong({way({1, 2, 0}), way({1, 0})}).find("at different places"),
            std::string::npos);
  EXPECT_NE(what_is_wrong({way({1, 0}), way({0, 1})}).find("are not one tree"), std::string::npos);
  EXPECT_NE(what_is_wrong({way({1, 2, 1, 0})}).find("at different places"), std::string::npos);
  EXPECT_NE(what_is_wrong({way({0}), way({})}).find("names none"), std::string::npos);
  EXPECT_NE(what_is_wrong(Ways(65, way({0}))).find("too many ports"), std::string::npos);
  Ways deep(2, way({1, 0}));
  deep[1].levels = kMaxLevels + 1;
  EXPECT_NE(what_is_wrong(deep).find("too many levels"), std::string::npos);
}

}  // namespace
}  // namespace carillon::aggregate
