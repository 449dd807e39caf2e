// SPDX-License-Identifier: Apache-2.0
//
// Many collectives in flight: on one team and several, completed in any order, started before the
// team is ready, in another order on other ranks, and far ahead of a slow reader.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

// One collective in flight, with its own memory and what must come out.
struct Flight {
  crl_request_h request = nullptr;
  std::vector<std::int64_t> in, out, expected;

  void start(crl_team_h team, int ranks, int rank, int round, std::size_t count) {
    const auto size = static_cast<std::size_t>(ranks);
    const int root = round % ranks;
    in = values_of(rank, round, count * size);
    switch (round % 4) {
      case 0:
        expected = values_of(root, round, count);
        out = rank == root ? expected : std::vector<std::int64_t>(count);
        expect_ok(crl_ibcast(team, out.data(), count * 8, root, &request), "ibcast");
        break;
      case 1:
        expected = sums_of(ranks, round, count);
        out.resize(count);
        expect_ok(crl_iallreduce(team, in.data(), out.data(), count, CRL_INT64, CRL_SUM, &request),
                  "iallreduce");
        break;
      case 2:
        for (int from = 0; from < ranks; ++from) {
          for (std::size_t i = 0; i < count; ++i) {
            expected.push_back(
                value_of(from, round,
                         static_cast<std::int64_t>(static_cast<std::size_t>(rank) * count + i)));
          }
        }
        out.resize(count * size);
        expect_ok(crl_ialltoall(team, in.data(), out.data(), count * 8, &request), "ialltoall");
        break;
      default:
        if (rank == root) expected = sums_of(ranks, round, count);
        out.resize(expected.size());
        expect_ok(
            crl_ireduce(team, in.data(), out.data(), count, CRL_INT64, CRL_SUM, root, &request),
            "ireduce");
        break;
    }
  }
  void end(const char* what, int number) {
    expect_ok(crl_request_wait(&request), what);
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(out, expected) << what << " " << number;
  }
};

struct Style {
  const char* algorithms;  // CARILLON_ALGORITHM
  std::size_t count;
  int outstanding;  // per team
};

class AnyOrder : public testing::TestWithParam<Style> {};

// Three teams, started before they are ready, ended in another random order on every rank.
TEST_P(AnyOrder, OnSeveralTeams) {
  constexpr int kRanks = 4;
  constexpr int kTeams = 3;
  const Style style = GetParam();
  Meeting world(kRanks);
  std::vector<std::unique_ptr<Meeting>> meetings;
  for (int i = 0; i < kTeams; ++i) meetings.push_back(std::make_unique<Meeting>(kRanks));
  expect_processes_ok(kRanks, [&](int rank) {
    setenv("CARILLON_ALGORITHM", style.algorithms, 1);
    crl_context_h context = make_context(world, rank);
    std::vector<crl_team_h> teams;
    for (auto& meeting : meetings) teams.push_back(make_team(context, meeting->oob(rank)));
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    for (int wave = 0; wave < 2; ++wave) {
      std::vector<Flight> flights(static_cast<std::size_t>(kTeams * style.outstanding));
      std::vector<int> next(kTeams, 0);
      for (std::size_t i = 0; i < flights.size(); ++i) {  // teams in an order of the rank's own
        auto team = static_cast<std::size_t>(random() % kTeams);
        while (next[team] == style.outstanding) team = (team + 1) % kTeams;
        const int round = next[team]++;
        flights[team * static_cast<std::size_t>(style.outstanding) +
                static_cast<std::size_t>(round)]
            .start(teams[team], kRanks, rank, round + wave, style.count);
      }
      std::vector<int> order(flights.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      for (const int i : order) flights[static_cast<std::size_t>(i)].end("flight", i);
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    for (crl_team_h team : teams) crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(
    NonBlocking, AnyOrder,
    testing::Values(
        Style{"", 1, 200}, Style{"", 3000, 60}, Style{"", 40000, 12},
        Style{"bcast=chain;allreduce=recursive_doubling;alltoall=pairwise;reduce=degree_k:k=1", 2,
              200},
        Style{"bcast=binomial;allreduce=ring;alltoall=bruck_resident;reduce=degree_k:k=2", 5000,
              40},
        Style{"bcast=chain;allreduce=degree_k:k=1;alltoall=flat;reduce=flat_blocks", 40000, 12}));

// Requests are taken again from the heap of used ones while older collectives still run.
TEST(NonBlocking, NewerEndBeforeOlder) {
  Meeting world(3), meeting(3);
  expect_processes_ok(3, [&](int rank) {
    setenv("CARILLON_ALGORITHM", "bcast=chain", 1);
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    for (int round = 0; round < 80; ++round) {
      // Rank 2 starts late: on rank 0 and 1 the collectives end in another order than they began.
      if (rank == 2 && round % 20 == 0) usleep(500);
      std::vector<std::int64_t> slow(2000, rank == 2 ? round : -1);
      crl_request_h oldest = nullptr;
      expect_ok(crl_ibcast(team, slow.data(), slow.size() * 8, 2, &oldest));
      for (int i = 0; i < 10; ++i) {  // rank 0 ends these at once
        std::int64_t value = rank == 0 ? value_of(0, round, i) : 0;
        crl_request_h request = nullptr;
        expect_ok(crl_ibcast(team, &value, 8, 0, &request));
        expect_ok(crl_request_wait(&request));
        ASSERT_EQ(value, value_of(0, round, i));
        std::int64_t again = rank == 0 ? value_of(1, round, i) : 0;
        expect_ok(crl_bcast(team, &again, 8, 0));
        ASSERT_EQ(again, value_of(1, round, i));
      }
      expect_ok(crl_request_wait(&oldest));
      ASSERT_EQ(slow, std::vector<std::int64_t>(2000, round));
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Rank 1 forwards the first broadcast, and is the root of many more on the same channel, which
// are all ready to go before the first one arrives.
TEST(NonBlocking, LaterCollectivesMayNotTakeTheLinesOfEarlierOnes) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{8000}, std::size_t{40000}}) {
    Meeting world(3), meeting(3);
    expect_processes_ok(
        3,
        [&](int rank) {
          setenv("CARILLON_ALGORITHM", "bcast=chain", 1);
          crl_context_h context = make_context(world, rank);
          crl_team_h team = make_team(context, meeting.oob(rank));
          expect_ok(settle(team));
          world.barrier(rank);
          constexpr int kMore = 30;
          std::vector<std::vector<std::int64_t>> data;
          std::vector<crl_request_h> requests(kMore + 1);
          for (int i = 0; i <= kMore; ++i) {
            const int root = i == 0 ? 0 : 1;
            data.push_back(rank == root ? values_of(root, i, count)
                                        : std::vector<std::int64_t>(count));
          }
          if (rank == 0) usleep(20000);
          for (int i = 0; i <= kMore; ++i) {
            const auto at = static_cast<std::size_t>(i);
            expect_ok(crl_ibcast(team, data[at].data(), count * 8, i == 0 ? 0 : 1, &requests[at]));
          }
          for (int i = kMore; i >= 0; --i) {
            const auto at = static_cast<std::size_t>(i);
            expect_ok(crl_request_wait(&requests[at]));
            ASSERT_EQ(data[at], values_of(i == 0 ? 0 : 1, i, count)) << i;
          }
          crl_team_destroy(team);
          crl_context_destroy(context);
        },
        20);
  }
}

// Rank 0: Ibcast on A many times, then allreduce on B. Rank 1: the other way round.
class CrossTeam : public testing::TestWithParam<std::size_t> {};

TEST_P(CrossTeam, InOppositeOrders) {
  const std::size_t count = GetParam();
  constexpr int kTeams = 5;  // four of kind A
  constexpr int kEach = 30;
  Meeting world(2);
  std::vector<std::unique_ptr<Meeting>> meetings;
  for (int i = 0; i < kTeams; ++i) meetings.push_back(std::make_unique<Meeting>(2));
  expect_processes_ok(
      2,
      [&](int rank) {
        setenv("CARILLON_SLOT_BYTES", "262144", 1);  // few chunks
        crl_context_h context = make_context(world, rank);
        std::vector<crl_team_h> teams;
        for (auto& meeting : meetings) teams.push_back(make_team(context, meeting->oob(rank)));
        std::vector<crl_request_h> requests;
        std::vector<std::vector<std::int64_t>> data;
        const auto broadcasts = [&] {
          for (int i = 0; i < (kTeams - 1) * kEach; ++i) {
            data.push_back(rank == 0 ? values_of(0, i, count) : std::vector<std::int64_t>(count));
            requests.push_back(nullptr);
            expect_ok(crl_ibcast(teams[static_cast<std::size_t>(i % (kTeams - 1))],
                                 data.back().data(), count * 8, 0, &requests.back()));
          }
        };
        const auto reductions = [&] {
          for (const std::size_t n : {count, 3 * count, 20 * count}) {
            const auto mine = values_of(rank, 1, n);
            std::vector<std::int64_t> sums(n),
                copy = rank == 0 ? mine : std::vector<std::int64_t>(n);
            crl_team_h team = teams.back();
            expect_ok(crl_allreduce(team, mine.data(), sums.data(), n, CRL_INT64, CRL_SUM));
            ASSERT_EQ(sums, sums_of(2, 1, n));
            expect_ok(crl_bcast(team, copy.data(), n * 8, 0));
            ASSERT_EQ(copy, values_of(0, 1, n));
          }
        };
        if (rank == 0) broadcasts();
        reductions();
        if (rank == 1) broadcasts();
        for (std::size_t i = 0; i < requests.size(); ++i) {
          expect_ok(crl_request_wait(&requests[i]));
          ASSERT_EQ(data[i], values_of(0, static_cast<std::int64_t>(i), count)) << i;
        }
        for (crl_team_h team : teams) crl_team_destroy(team);
        crl_context_destroy(context);
      },
      30);
}

INSTANTIATE_TEST_SUITE_P(NonBlocking, CrossTeam, testing::Values(1, 900, 20000, 32768));

// The address sanitizer keeps what is freed, and notes what is used.
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kMostBytes = 32 << 20;
#else
constexpr std::int64_t kMostBytes = 8 << 20;
#endif

TEST(RunningAhead, TenThousandBroadcastsToASlowReader) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{10000}}) {
    const int rounds = count > 5000 ? 2000 : 10000;
    Meeting world(3), meeting(3);
    expect_processes_ok(3, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      std::vector<std::int64_t> data(count);
      const std::int64_t before = pss_bytes();
      for (int round = 0; round < rounds; ++round) {
        if (rank == 2 && round % (rounds / 10) == 0) usleep(2000);
        if (rank == 0) std::fill(data.begin(), data.end(), round);
        expect_ok(crl_bcast(team, data.data(), count * 8, 0));
        ASSERT_EQ(data.front(), round);
        ASSERT_EQ(data.back(), round);
      }
      EXPECT_LE(pss_bytes() - before, kMostBytes);
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

}  // namespace
}  // namespace carillon::test
