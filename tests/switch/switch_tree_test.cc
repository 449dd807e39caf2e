// SPDX-License-Identifier: Apache-2.0
//
// Hosts on trees of model switches, on networks that lose, repeat and overtake: each bit of the
// results, what they hold, and when they end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/switch_team.h"

namespace carillon::aggregate {
namespace {

class SwitchTrees : public ::testing::TestWithParam<TreeShape> {};

TEST_P(SwitchTrees, BitsAreThoseOfTheOrderOnABadNetwork) {
  std::uint64_t seed = 1;
  for (const std::uint16_t window : std::initializer_list<std::uint16_t>{1, 4, 16}) {
    for (const std::uint16_t operand_bytes : std::initializer_list<std::uint16_t>{8, 64, 1408}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      Team team(GetParam(), window, operand_bytes, kBad, seed++);
      for (const std::size_t count : {1, 2, 7, 33, 64, 129, 500, 0}) {
        const std::size_t most = 24U * operand_bytes / 8;
        allreduce_any(team, std::min(count, most), false);
        allreduce_any(team, std::min(count, most), true);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(SwitchTrees, ASoundNetworkNeedsOnePacketUpAndOneDown) {
  Team team(GetParam(), 8, 256, {}, 5);
  const std::uint64_t before = team.net().delivered();
  allreduce<double>(team, Op::kSum, Type::kFloat64, 100, false);
  const std::uint64_t edges =
      static_cast<std::uint64_t>(team.hosts()) + team.plan().switches.size() - 1;
  EXPECT_EQ(team.net().delivered() - before, 2 * edges * 4) << "100 doubles are 4 packets";
  for (std::size_t i = 0; i < team.plan().switches.size(); ++i) {
    EXPECT_EQ(team.at(i).counters().duplicates, 0U);
    EXPECT_EQ(team.at(i).counters().malformed, 0U);
  }
}

std::string name_of_shape(const ::testing::TestParamInfo<TreeShape>& info) {
  return "hosts" + std::to_string(info.param.hosts) + "of" + std::to_string(info.param.fan_out) +
         (info.param.holes ? "holes" : "");
}
INSTANTIATE_TEST_SUITE_P(Shapes, SwitchTrees,
                         ::testing::Values(TreeShape{1, 1, false}, TreeShape{2, 2, false},
                                           TreeShape{3, 2, true}, TreeShape{5, 4, false},
                                           TreeShape{7, 3, true}, TreeShape{8, 2, false},
                                           TreeShape{13, 3, true}, TreeShape{13, 16, false}),
                         name_of_shape);

// Many are in flight, begun at other times by each host, and each comes out as it should.
TEST(SwitchStreams, OperationsOverlap) {
  Team team({5, 3, false}, 4, 64, kBad, 3);
  constexpr std::size_t kEach = 40, kCount = 20;
  std::vector<std::vector<std::int64_t>> buffers(5);
  std::vector<Stream::Ticket> last(5);
  for (std::size_t host = 0; host < 5; ++host) {
    buffers[host].resize(kEach * kCount);
    for (std::size_t i = 0; i < buffers[host].size(); ++i) {
      buffers[host][i] = static_cast<std::int64_t>((host + 1) * 1000 + i);
    }
    for (std::size_t k = 0; k < kEach; ++k) {
      auto* const at = reinterpret_cast<std::byte*>(&buffers[host][k * kCount]);
      last[host] = *team.stream(static_cast<int>(host))
                        .post({.op = Op::kSum,
                               .type = Type::kInt64,
                               .input = at,
                               .output = at,
                               .count = kCount});
    }
    // The first ones set out long before the last.
    SwitchNet::Port port(team.net(), host_at(static_cast<int>(host)));
    for (int i = 0; i < 100; ++i) {
      team.stream(static_cast<int>(host)).progress(team.net().now_ns(), port);
      const std::int64_t next = team.net().now_ns() + 10'000'000;
      while (team.net().step(next)) {
      }
    }
  }
  ASSERT_TRUE(team.run(last));
  for (std::size_t host = 0; host < 5; ++host) {
    for (std::size_t i = 0; i < buffers[host].size(); ++i) {
      ASSERT_EQ(buffers[host][i], static_cast<std::int64_t>(15000 + 5 * i)) << host << " " << i;
    }
  }
}

// When the switches are gone, each host still holds what it takes to end without them.
TEST(SwitchStreams, HoldOperandsAndResultsUntilAllHaveThem) {
  constexpr std::uint16_t kWindow = 4;
  Team team({3, 2, false}, kWindow, 8, kBad, 11);
  allreduce<std::int64_t>(team, Op::kSum, Type::kInt64, 25, false);
  std::vector<std::int64_t> input(8), output(8);
  std::vector<Stream::Ticket> tickets;
  for (int host = 0; host < 3; ++host) {  // the last one says nothing
    tickets.push_back(
        *team.stream(host).post({.op = Op::kSum,
                                 .type = Type::kInt64,
                                 .input = reinterpret_cast<std::byte*>(input.data()),
                                 .output = reinterpret_cast<std::byte*>(output.data()),
                                 .count = 8}));
    SwitchNet::Port port(team.net(), host_at(host));
    if (host < 2) team.stream(host).progress(team.net().now_ns(), port);
  }
  for (const TreeSwitch& one : team.plan().switches) team.net().remove(one.at);
  ASSERT_TRUE(team.run(tickets));
  for (int host = 0; host < 3; ++host) {
    Stream& stream = team.stream(host);
    EXPECT_EQ(stream.status().code(), Code::kPeerDead) << stream.status().to_string();
    EXPECT_FALSE(stream.done(tickets[static_cast<std::size_t>(host)]));
    EXPECT_EQ(stream.next_sequence(), 25U + kWindow);
    for (std::uint32_t sequence = 25 - kWindow; sequence < 25; ++sequence) {
      const auto held = stream.held(sequence);
      ASSERT_TRUE(held && held->result) << sequence;
      EXPECT_EQ(held->operand.size(), 8U);
      const auto other = team.stream(0).held(sequence);
      EXPECT_EQ(std::memcmp(held->result->data(), other->result->data(), 8), 0);
    }
    const auto open = stream.held(25);
    ASSERT_TRUE(open);
    EXPECT_FALSE(open->result);
  }
}

TEST(SwitchStreams, WaitForALateHostAsLongAsTheSwitchesLive) {
  Team team({2, 2, false}, 4, 64, kBad, 13);
  std::vector<std::int32_t> values = {5, 6};
  auto* const at = reinterpret_cast<std::byte*>(values.data());
  const auto ticket = *team.stream(0).post(
      {.op = Op::kMax, .type = Type::kInt32, .input = at, .output = nullptr, .count = 2});
  SwitchNet::Port port(team.net(), host_at(0));
  const std::int64_t end = team.net().now_ns() + std::int64_t{600} * 1'000'000'000;
  while (team.net().now_ns() < end) {
    team.stream(0).progress(team.net().now_ns(), port);
    const std::int64_t next = team.net().now_ns() + 10'000'000;
    while (team.net().step(next)) {
    }
  }
  EXPECT_TRUE(team.stream(0).status().ok()) << team.stream(0).status().to_string();
  const auto other = *team.stream(1).post(
      {.op = Op::kMax, .type = Type::kInt32, .input = nullptr, .output = at, .count = 2});
  ASSERT_TRUE(team.run({ticket, other}));
  EXPECT_EQ(values, (std::vector<std::int32_t>{5, 6}));
}

TEST(SwitchStreams, EndWhenASwitchHasForgottenThemOrRanksDisagree) {
  for (const bool root : {true, false}) {
    Team team({8, 2, false}, 4, 64, kBad, 17);
    const std::size_t which = root ? 0 : 2;
    team.net().add_switch(team.plan().switches[which].at, {.administrator = kAdministrator});
    std::vector<std::int32_t> values = {5, 6};
    auto* const at = reinterpret_cast<std::byte*>(values.data());
    std::vector<Stream::Ticket> tickets;
    for (int host = 0; host < 8; ++host) {
      tickets.push_back(*team.stream(host).post(
          {.op = Op::kSum, .type = Type::kInt32, .input = at, .output = nullptr, .count = 2}));
    }
    const std::int64_t end = team.net().now_ns() + std::int64_t{2} * 1'000'000'000;
    while (team.net().now_ns() < end) {
      for (int host = 0; host < 8; ++host) {
        SwitchNet::Port port(team.net(), host_at(host));
        team.stream(host).progress(team.net().now_ns(), port);
      }
      const std::int64_t next = team.net().now_ns() + 1'000'000;
      while (team.net().step(next)) {
      }
    }
    int ended = 0;
    for (int host = 0; host < 8; ++host) {
      const Status& status = team.stream(host).status();
      ended += status.ok() ? 0 : 1;
      EXPECT_TRUE(status.ok() || status.code() == Code::kPeerDead) << status.to_string();
      EXPECT_FALSE(team.stream(host).done(tickets[static_cast<std::size_t>(host)]));
    }
    EXPECT_EQ(ended, root ? 8 : 4);
  }
  Team team({2, 2, false}, 4, 64, {}, 19);
  std::vector<std::int64_t> values(4);
  auto* const at = reinterpret_cast<std::byte*>(values.data());
  const auto a = *team.stream(0).post(
      {.op = Op::kSum, .type = Type::kInt64, .input = at, .output = nullptr, .count = 3});
  const auto b = *team.stream(1).post(
      {.op = Op::kSum, .type = Type::kInt64, .input = at, .output = nullptr, .count = 4});
  SwitchNet::Port port(team.net(), host_at(0)), second(team.net(), host_at(1));
  team.stream(0).progress(team.net().now_ns(), port);
  team.stream(1).progress(team.net().now_ns(), second);
  while (team.net().step(team.net().now_ns() + 1'000'000)) {
  }
  EXPECT_EQ(team.stream(1).status().code(), Code::kMismatch);
  EXPECT_FALSE(team.stream(0).done(a) || team.stream(1).done(b));
}

}  // namespace
}  // namespace carillon::aggregate
