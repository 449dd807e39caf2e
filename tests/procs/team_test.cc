// SPDX-License-Identifier: Apache-2.0
//
// Teams: made and destroyed many times while other members lag, many at once, small in memory.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

// Short and long broadcasts and an allreduce, checked; `round` makes the data new.
void use_team(crl_team_h team, int ranks, int round) {
  const int rank = crl_team_rank(team);
  const int root = round % ranks;
  for (int i = 0; i < 7; ++i) {  // the window passes round before anybody answers
    std::int64_t value = rank == root ? value_of(root, round, i) : 0;
    expect_ok(crl_bcast(team, &value, sizeof value, root), "bcast");
    ASSERT_EQ(value, value_of(root, round, i)) << "round " << round << " bcast " << i;
  }
  const auto mine = values_of(rank, round, 3);
  std::vector<std::int64_t> sums(3);
  expect_ok(crl_allreduce(team, mine.data(), sums.data(), 3, CRL_INT64, CRL_SUM), "allreduce");
  ASSERT_EQ(sums, sums_of(ranks, round, 3)) << "round " << round;
}

TEST(Team, FirstCollectiveIsManyBroadcasts) {
  Meeting world(3), meeting(3);
  expect_processes_ok(
      3,
      [&](int rank) {
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, meeting.oob(rank));
        for (int i = 0; i < 500; ++i) {
          if (rank == 2 && i % 50 == 0) usleep(1000);
          std::int64_t value = rank == 0 ? value_of(0, i, 0) : 0;
          expect_ok(crl_bcast(team, &value, sizeof value, 0));
          ASSERT_EQ(value, value_of(0, i, 0)) << i;
        }
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      20);
}

// The root of the broadcasts leaves first: its area, or the others', is reused while some lag.
TEST(Team, ThousandsMadeAndDestroyedWhileOthersLag) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    for (int round = 0; round < 1000; ++round) {
      crl_team_h team = make_team(context, meeting.oob(rank));
      if ((round + rank) % 5 == 0) sched_yield();
      use_team(team, kRanks, round);
      std::int64_t last = rank == 0 ? round : -1;  // a rooted one at the end: rank 0 runs ahead
      expect_ok(crl_bcast(team, &last, sizeof last, 0));
      ASSERT_EQ(last, round);
      crl_team_destroy(team);
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    crl_context_destroy(context);
  });
}

// Overlapping lives: every team lives for three rounds, so that areas of different sizes mix.
TEST(Team, AreasOfDifferentSizesAreReused) {
  constexpr int kRanks = 4;
  Meeting world(kRanks), all(kRanks), low(2), high(2);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    std::vector<crl_team_h> teams;
    for (int round = 0; round < 120; ++round) {
      const bool pair = round % 2 == 1;
      Meeting& half = rank < 2 ? low : high;
      crl_team_h team = make_team(context, pair ? half.oob(rank % 2) : all.oob(rank));
      teams.push_back(team);
      expect_ok(settle(team));
      for (crl_team_h each : teams) use_team(each, crl_team_size(each), round);
      if (teams.size() == 3) {
        crl_team_destroy(teams.front());
        teams.erase(teams.begin());
      }
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    crl_context_destroy(context);  // with teams left: it destroys them
  });
}

TEST(Team, ManyAtOnceStaySmall) {
  constexpr int kRanks = 4;
  constexpr int kTeams = 150;
  Meeting world(kRanks);
  std::vector<std::unique_ptr<Meeting>> meetings;
  for (int i = 0; i <= kTeams; ++i) meetings.push_back(std::make_unique<Meeting>(kRanks));
  expect_processes_ok(kRanks, [&](int rank) {
    // Shared pages count in part: all ranks must be there while any of them counts.
    const auto count = [&] {
      world.barrier(rank);
      const std::int64_t bytes = pss_bytes();
      world.barrier(rank);
      return bytes;
    };
    const std::int64_t before = count();
    crl_context_h context = make_context(world, rank);
    std::vector<crl_team_h> teams{make_team(context, meetings[0]->oob(rank))};
    use_team(teams[0], kRanks, 0);
    const std::int64_t started = count();
    EXPECT_LE(started - before, 8 << 20);
    for (int i = 1; i <= kTeams; ++i) {  // all agreements in flight together
      teams.push_back(make_team(context, meetings[static_cast<std::size_t>(i)]->oob(rank)));
    }
    for (int i = 0; i <= kTeams; ++i) use_team(teams[static_cast<std::size_t>(i)], kRanks, i);
    for (int i = kTeams; i >= 0; --i) use_team(teams[static_cast<std::size_t>(i)], kRanks, i);
    const std::int64_t per_team = (count() - started) / kTeams;
    // Across nodes a team has a page more per neighbour, at least.
    const bool nodes = std::getenv("CARILLON_NODE_RANKS") != nullptr;
#if defined(__SANITIZE_ADDRESS__)
    constexpr int kCheckerBytes = 4 << 10;  // what it puts around allocations
#else
    constexpr int kCheckerBytes = 0;
#endif
    EXPECT_LE(per_team, (nodes ? 64 << 10 : 16 << 10) + kCheckerBytes);
    if (rank == 0) {
      std::printf("rank 0: %lld KiB after start, %lld bytes more per team\n",
                  static_cast<long long>((started - before) >> 10),
                  static_cast<long long>(per_team));
    }
    for (crl_team_h team : teams) crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

class TeamOfMany : public testing::TestWithParam<int> {};

TEST_P(TeamOfMany, BesideTeamsOfOne) {
  const int ranks = GetParam();
  Meeting world(ranks), all(ranks);
  std::vector<std::unique_ptr<Meeting>> alone;
  for (int i = 0; i < ranks; ++i) alone.push_back(std::make_unique<Meeting>(1));
  expect_processes_ok(ranks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h one = make_team(context, alone[static_cast<std::size_t>(rank)]->oob(0));
    crl_team_h team = make_team(context, all.oob(rank));
    use_team(one, 1, 1);
    for (int round = 0; round < 50; ++round) use_team(team, ranks, round);
    crl_team_destroy(one);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TeamOfMany, testing::Values(16, 64));

// Of processes that were not started together. What was set aside for them is there for others.
TEST(Team, RefusedOnesTakeNoRoom) {
  Meeting one(1), other(1), both(2), alone(1);
  crl_context_h context = make_context(one, 0);
  crl_context_h stranger = make_context(other, 0);
  for (int i = 0; i < 70000; ++i) {  // 64 MiB, if each took 1 KiB
    crl_team_h team = make_team(context, both.oob(0));
    crl_team_h its = make_team(stranger, both.oob(1));
    ASSERT_EQ(settle(team), CRL_ERR_UNSUPPORTED);
    ASSERT_EQ(settle(its), CRL_ERR_UNSUPPORTED);
    crl_team_destroy(team);
    crl_team_destroy(its);
  }
  crl_team_h team = make_team(context, alone.oob(0));
  expect_ok(settle(team));
  expect_ok(crl_barrier(team));
  crl_team_destroy(team);
  crl_context_destroy(stranger);
  crl_context_destroy(context);
}

// Destroyed before it was ever ready, at some or all members; the context goes on.
TEST(Team, DestroyedUnused) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), all(kRanks);
  std::vector<std::unique_ptr<Meeting>> unused;
  for (int i = 0; i < 20; ++i) unused.push_back(std::make_unique<Meeting>(kRanks));
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    for (auto& meeting : unused) crl_team_destroy(make_team(context, meeting->oob(rank)));
    crl_team_h team = make_team(context, all.oob(rank));
    for (int round = 0; round < 20; ++round) use_team(team, kRanks, round);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
