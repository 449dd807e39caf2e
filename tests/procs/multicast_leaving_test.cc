// SPDX-License-Identifier: Apache-2.0
//
// Ends of members of teams with multicast: those who die, and those who leave while others still
// need something of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"
#include "support/multicast_team.h"
#include "support/process.h"

namespace carillon::test {
namespace {

class MulticastLeaving : public testing::TestWithParam<const char*> {};

// The victim ends before the broadcast: as its root, or as one that would receive it.
TEST_P(MulticastLeaving, ADeadMemberEndsTheBroadcast) {
  set_environment(GetParam(), "udp:lo");
  for (const int victim : {0, 4}) {
    Meeting world(kRanks), members(kRanks);
    const auto exits = run_processes(kRanks, [&](int rank) {
      crl_context_h context = make_context(world, rank, false, 100);
      crl_team_h team = make_team(context, members.oob(rank));
      broadcast_rounds(team, 5);
      meet(context, members, rank);
      if (rank == victim) _exit(0);
      std::vector<std::int64_t> data(1 << 20);  // longer than any window
      crl_status_t status = CRL_OK;
      // Who has all of one broadcast notices at one of the next.
      while (status == CRL_OK) {
        status = crl_bcast(team, data.data(), data.size() * sizeof data[0], 0);
      }
      EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << crl_last_error();
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
    expect_all_ok(exits);
  }
}

// One rank calls when the others have long ended their part, and much of what was sent is lost: who
// has it stays until it has come.
TEST_P(MulticastLeaving, NobodyLeavesWhomAnotherNeeds) {
  set_environment(GetParam(), "udp:lo");
  setenv("CARILLON_FAULT", "lose=0.3,seed=5", 1);
  constexpr double kLate_s = 3;  // longer than anybody stays without a reason
  for (const int late : {3, 4}) {
    Meeting world(kRanks), members(kRanks);
    const auto exits = run_processes(kRanks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, members.oob(rank));
      broadcast_rounds(team, 5);
      meet(context, members, rank);
      const auto expected = values_of(0, late, 20000);  // less than a window
      auto data = rank == 0 ? expected : std::vector<std::int64_t>(expected.size());
      if (rank == late) usleep(static_cast<useconds_t>(kLate_s * 1e6));
      expect_ok(crl_bcast(team, data.data(), data.size() * sizeof data[0], 0), "bcast");
      EXPECT_EQ(data, expected) << "rank " << rank;
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
    expect_all_ok(exits);
  }
  unsetenv("CARILLON_FAULT");
}

// How often a message has found the window full, in either group that these algorithms send by.
std::uint64_t full_windows(TeamMulticast& groups) {
  std::uint64_t count = 0;
  for (const Channel channel : {Channel::kTeam, Channel::kNodes}) {
    count += groups.streams(channel).group().counters().sent.window_full;
  }
  return count;
}

// Rank 0's part of it: until it has broadcast, and what says so to the other one, which it does now
// and then while it waits in the next call, has left the process. Or until the window is full,
// where it is so short that the broadcast waits for the other one.
void broadcast_and_tell(crl_context_h context, crl_team_h team, std::vector<std::int64_t>& data) {
  net::Network& network = *context->engine->network();
  TeamMulticast& groups = *team->team->multicast();
  const std::uint64_t full = full_windows(groups);
  crl_request_h bcast = nullptr, barrier = nullptr;
  expect_ok(crl_ibcast(team, data.data(), data.size() * sizeof data[0], 0, &bcast), "ibcast");
  expect_ok(crl_ibarrier(team, &barrier), "ibarrier");
  while (crl_request_test(&bcast) == CRL_IN_PROGRESS && full_windows(groups) == full) {
  }
  if (bcast != nullptr) return;
  const std::uint64_t before = network.counters().statuses;
  while (network.counters().statuses == before || !network.idle()) {
    expect_ok(crl_context_progress(context));
  }
}

// Of two ranks on two nodes the root dies when it has done its part and is in the next call, so
// that the other one knows, and half of what it sent is lost: the other one comes to it only then,
// so that nothing was repaired.
TEST_P(MulticastLeaving, WhatADeadRootHasNotRepairedIsAnError) {
  set_environment(GetParam(), "udp:lo");
  setenv("CARILLON_NODE_RANKS", "1,1", 1);
  setenv("CARILLON_FAULT", "lose=0.5,seed=5", 1);
  Meeting world(2), members(2), end(2);
  const auto exits = run_processes(2, [&](int rank) {
    const OtherProcess root(tell_process(end, rank)[0]);
    crl_context_h context = make_context(world, rank, false, 100);
    crl_team_h team = make_team(context, members.oob(rank));
    broadcast_rounds(team, 4);
    expect_ok(crl_barrier(team), "barrier");  // who talks to it alone, too, hears what a rank did
    std::vector<std::int64_t> data(100000);   // 99 packets
    end.barrier(rank);                        // without progress, from here on
    if (rank == 0) {
      broadcast_and_tell(context, team, data);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    ASSERT_TRUE(root.wait_for_end());
    const std::uint32_t window =
        team->team->multicast()->streams(Channel::kTeam).group().config().window;
    const auto status = crl_bcast(team, data.data(), data.size() * sizeof data[0], 0);
    EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << crl_last_error();
    if (window > 110) {
      EXPECT_EQ(team->team->endpoint().completed_by(0), 6U) << "it knows";
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  expect_all_ok(exits);
  unsetenv("CARILLON_FAULT");
}

INSTANTIATE_TEST_SUITE_P(Algorithms, MulticastLeaving,
                         testing::Values("multicast", "multicast_leader", "multicast_dynamic"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace carillon::test
