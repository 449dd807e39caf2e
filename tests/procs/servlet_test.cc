// SPDX-License-Identifier: Apache-2.0
//
// The servlet: non-blocking collectives end while no rank calls carillon, many at once and in any
// order; what belongs to the program's threads stays there; ranks that die are noticed.
#include "engine/servlet.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"
#include "support/started.h"

namespace carillon::test {
namespace {

crl_context_h make_served(Meeting& world, int rank, const char* servlet) {
  setenv("CARILLON_SERVLET", servlet, 1);
  return make_context(world, rank);
}

// As processes, as programs have them; as threads, for the thread sanitizer, which then sees all
// that works on the node's memory.
enum class RanksAre { kProcesses, kThreads };

class Servlet : public testing::TestWithParam<RanksAre> {
 protected:
  void SetUp() override { setenv("CARILLON_SERVLET", "on", 1); }
  void TearDown() override { unsetenv("CARILLON_SERVLET"); }

  static void expect_ranks_ok(int ranks, const std::function<void(int)>& body, int timeout_s = 60) {
    if (GetParam() == RanksAre::kThreads) {
      run_threads(ranks, body);
    } else {
      expect_processes_ok(ranks, body, timeout_s);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Processes, Servlet, testing::Values(RanksAre::kProcesses));
INSTANTIATE_TEST_SUITE_P(Threads, Servlet, testing::Values(RanksAre::kThreads));

struct One {
  crl_request_h request = nullptr;
  std::vector<std::int64_t> in, out, expected;
};

// Rank 0 starts first, so that without the servlet nothing could come to it.
TEST_P(Servlet, EndsWhatRanksHaveOnlyStarted) {
  for (const int ranks : {2, 3, 5}) {
    Meeting world(ranks), meeting(ranks), others(ranks);
    expect_ranks_ok(ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      expect_ok(settle(team));
      const auto in = values_of(rank, 1, kStartedCount);
      for (const Started& collective : kStarted) {
        const auto expected = collective.expected(rank, ranks);
        std::vector<std::int64_t> out(expected.size());
        crl_request_h request = nullptr;
        if (rank > 0) others.barrier(rank);
        expect_ok(collective.start({team, rank, ranks, in.data(), out.data()}, &request),
                  collective.name);
        if (rank == 0) others.barrier(rank);
        EXPECT_TRUE(compute_until(out, expected)) << collective.name << " at rank " << rank;
        others.barrier(rank);
        expect_ok(crl_request_wait(&request), collective.name);
        EXPECT_EQ(out, expected) << collective.name;
      }
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

// Another thread has the engine's lock, as the servlet has while it moves bytes; one collective is
// under way, so that there is a lock. What is started meanwhile comes to its end in order.
TEST_P(Servlet, AStartWaitsForNobody) {
  constexpr int kRanks = 2, kStarts = 5;
  Meeting world(kRanks), meeting(kRanks), second(kRanks), others(kRanks);
  expect_ranks_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    crl_team_h other = make_team(context, second.oob(rank));
    expect_ok(settle(team));
    expect_ok(settle(other));
    std::vector<One> all(kStarts);
    const auto start = [&] {
      for (int round = 0; round < kStarts; ++round) {
        One& one = all[static_cast<std::size_t>(round)];
        const std::size_t count = kStartedCount / (static_cast<std::size_t>(round) + 1);
        one.in = values_of(rank, round, count);
        one.out.resize(count);
        one.expected = sums_of(kRanks, round, count);
        expect_ok(crl_iallreduce(team, one.in.data(), one.out.data(), count, CRL_INT64, CRL_SUM,
                                 &one.request));
      }
    };
    const auto in = values_of(rank, 9, kStartedCount);
    std::vector<std::int64_t> out(kStartedCount);
    crl_request_h first = nullptr;
    if (rank != 0) others.barrier(rank);
    expect_ok(start_allreduce({other, rank, kRanks, in.data(), out.data()}, &first));
    if (rank == 0) {
      // The servlet has it, and so it does not wait to be handed something.
      while (!shm::anybody_sleeps(context->engine->segment())) sched_yield();
      std::atomic<bool> locked = false, started = false;
      std::thread holder([&] {
        const Engine::Lock lock(*context->engine);
        locked = true;
        const Stopwatch watch;
        while (!started && watch.seconds() < kPatienceS) sched_yield();
        EXPECT_TRUE(started.load()) << "a start waits for the lock";
      });
      while (!locked) sched_yield();
      start();
      started = true;
      holder.join();
      others.barrier(rank);
    } else {
      start();
    }
    for (const One& one : all) EXPECT_TRUE(compute_until(one.out, one.expected));
    others.barrier(rank);
    for (One& one : all) {
      expect_ok(crl_request_wait(&one.request));
      EXPECT_EQ(one.out, one.expected);
    }
    expect_ok(crl_request_wait(&first));
    EXPECT_EQ(out, sums_of(kRanks, 9, kStartedCount));
    crl_team_destroy(other);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Nor does the end of what is done, neither a test's nor a wait's; and what has ended is good for
// others when the lock is there again.
TEST_P(Servlet, AnEndWaitsForNobody) {
  constexpr int kRanks = 2, kCalls = 6;
  Meeting world(kRanks), meeting(kRanks);
  expect_ranks_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    for (int round = 0; round < 3; ++round) {
      {
        Engine::Lock lock(*context->engine);
        lock.share();
        context->take_leaving_requests();
      }
      std::vector<One> all(kCalls);
      for (One& one : all) {
        one.in = values_of(rank, round, kStartedCount);
        one.out.resize(kStartedCount);
        one.expected = sums_of(kRanks, round, kStartedCount);
        expect_ok(crl_iallreduce(team, one.in.data(), one.out.data(), kStartedCount, CRL_INT64,
                                 CRL_SUM, &one.request));
      }
      for (const One& one : all) {
        const Stopwatch watch;
        while (!one.request->done() && watch.seconds() < kPatienceS) sched_yield();
        ASSERT_TRUE(one.request->done()) << "the servlet does not end it";
      }
      std::atomic<bool> locked = false, ended = false;
      std::thread holder([&] {
        Engine::Lock lock(*context->engine);
        lock.share();
        locked = true;
        const Stopwatch watch;
        while (!ended && watch.seconds() < kPatienceS) sched_yield();
        EXPECT_TRUE(ended.load()) << "an end waits for the lock";
      });
      while (!locked) sched_yield();
      for (std::size_t i = 0; i < all.size(); ++i) {
        crl_request_h* const request = &all[i].request;
        expect_ok(i % 2 == 0 ? crl_request_test(request) : crl_request_wait(request));
        EXPECT_EQ(*request, nullptr);
        EXPECT_EQ(all[i].out, all[i].expected) << "round " << round;
      }
      ended = true;
      holder.join();
    }
    EXPECT_LE(context->spare_requests.size() + context->leaving_requests.size(), kCalls);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// What has failed is told when its buffers have been taken back, which needs the lock.
TEST(Servlet, TellsOfAFailureWhenItIsDealtWith) {
  setenv("CARILLON_SERVLET", "on", 1);
  Meeting world(2), meeting(2), others(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    const auto in = values_of(rank, 1, kStartedCount);
    std::vector<std::int64_t> out(kStartedCount);
    crl_request_h request = nullptr;
    if (rank == 0) expect_ok(start_allreduce({team, rank, 2, in.data(), out.data()}, &request));
    others.barrier(rank);
    if (rank == 0) {
      const Stopwatch watch;
      while (!request->done() && watch.seconds() < kPatienceS) sched_yield();
      ASSERT_TRUE(request->done()) << "nobody notices that the other rank has gone";
      EXPECT_FALSE(request->ended_well());
      std::atomic<bool> locked = false, asked = false;
      std::thread holder([&] {
        Engine::Lock lock(*context->engine);
        lock.share();
        locked = true;
        const Stopwatch patience;
        while (!asked && patience.seconds() < kPatienceS) sched_yield();
      });
      while (!locked) sched_yield();
      EXPECT_EQ(crl_request_test(&request), CRL_IN_PROGRESS);
      asked = true;
      holder.join();
      EXPECT_EQ(crl_request_wait(&request), CRL_ERR_PEER_DEAD) << crl_last_error();
      EXPECT_EQ(request, nullptr);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  unsetenv("CARILLON_SERVLET");
}

// The control: rank 0's private memory is nobody's to write but its own thread's.
TEST(NoServlet, NothingComesToWhoHasOnlyStarted) {
  constexpr int kRanks = 2;
  Meeting world(kRanks), meeting(kRanks), others(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_served(world, rank, "off");
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    const auto in = values_of(rank, 1, kStartedCount);
    const auto expected = sums_of(kRanks, 1, kStartedCount);
    std::vector<std::int64_t> out(kStartedCount);
    crl_request_h request = nullptr;
    if (rank > 0) others.barrier(rank);
    expect_ok(start_allreduce({team, rank, kRanks, in.data(), out.data()}, &request));
    if (rank == 0) others.barrier(rank);
    others.barrier(rank);
    EXPECT_TRUE(rank > 0 || out != expected);
    others.barrier(rank);
    expect_ok(crl_request_wait(&request));
    EXPECT_EQ(out, expected);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Fifty teams with twenty collectives each, all under way, ended by waiting and by testing in
// another random order on every rank, with blocking ones in between.
void run_many(int ranks, int rank, crl_context_h context, std::vector<crl_team_h>& teams) {
  constexpr int kPerTeam = 20;
  const std::size_t counts[] = {1, 2, 3, 5, 7, 8, 13, 3000, 20000};
  std::mt19937 random(static_cast<unsigned>(rank) + 7);
  std::vector<One> all(teams.size() * kPerTeam);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int number = 0; number < kPerTeam; ++number) {
    std::vector<std::size_t> turn(teams.size());
    std::iota(turn.begin(), turn.end(), std::size_t{0});
    std::shuffle(turn.begin(), turn.end(), random);
    for (const std::size_t team : turn) {
      One& one = all[team * kPerTeam + static_cast<std::size_t>(number)];
      const int round = number + static_cast<int>(team);
      const std::size_t count = counts[static_cast<std::size_t>(round) % std::size(counts)];
      one.in = values_of(rank, round, count);
      one.out.resize(count);
      one.expected = sums_of(ranks, round, count);
      expect_ok(crl_iallreduce(teams[team], one.in.data(), one.out.data(), count, CRL_INT64,
                               CRL_SUM, &one.request));
    }
  }
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    crl_status_t status = CRL_IN_PROGRESS;
    const bool tests = i % 3 == 0;
    if (!tests) status = crl_request_wait(&all[i].request);
    while (status == CRL_IN_PROGRESS) status = crl_request_test(&all[i].request);
    expect_ok(status);
    EXPECT_EQ(all[i].out, all[i].expected) << i;
    if (i % 50 == 0) expect_ok(crl_context_progress(context));
  }
  for (crl_team_h team : teams) expect_ok(crl_barrier(team));
}

TEST_P(Servlet, ManyInAnyOrder) {
  constexpr int kRanks = 3;
  constexpr int kTeams = 50;
  Meeting world(kRanks);
  std::vector<std::unique_ptr<Meeting>> meetings;
  for (int i = 0; i < kTeams; ++i) meetings.push_back(std::make_unique<Meeting>(kRanks));
  expect_ranks_ok(
      kRanks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank);
        std::vector<crl_team_h> teams;
        for (auto& meeting : meetings) teams.push_back(make_team(context, meeting->oob(rank)));
        for (int wave = 0; wave < 2; ++wave) run_many(kRanks, rank, context, teams);
        for (crl_team_h team : teams) crl_team_destroy(team);
        crl_context_destroy(context);
      },
      240);
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Of the process, whose other thread sleeps: less than 0.5 % of a core, after it had work.
TEST(Servlet, UsesNoCoreWithoutWork) {
  constexpr int kRanks = 2;
  constexpr double kIdleS = 2, kMost = 0.005;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_served(world, rank, "on");
    crl_team_h team = make_team(context, meeting.oob(rank));
    const auto in = values_of(rank, 1, kStartedCount);
    for (const Started& collective : kStarted) {
      const auto expected = collective.expected(rank, kRanks);
      std::vector<std::int64_t> out(expected.size());
      crl_request_h request = nullptr;
      expect_ok(collective.start({team, rank, kRanks, in.data(), out.data()}, &request),
                collective.name);
      expect_ok(crl_request_wait(&request), collective.name);
      EXPECT_EQ(out, expected) << collective.name;
    }
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(kIdleS));
    const double share = (cpu_seconds() - before) / kIdleS;
    std::printf("rank %d, idle for %.0f s: %.4f %% of a core\n", rank, kIdleS, 100 * share);
    EXPECT_LT(share, kMost);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

struct Caller {
  std::thread::id thread;
  bool other = false;
};

void add(void* arg, const void* in, void* inout, std::size_t count) {
  auto* const caller = static_cast<Caller*>(arg);
  caller->other |= std::this_thread::get_id() != caller->thread;
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<std::int64_t*>(inout)[i] += static_cast<const std::int64_t*>(in)[i];
  }
}

// Beside a collective that keeps the servlet awake.
TEST_P(Servlet, LeavesUsersOperatorsToTheProgram) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), meeting(kRanks), second(kRanks);
  expect_ranks_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    crl_team_h other = make_team(context, second.oob(rank));
    expect_ok(settle(team));
    expect_ok(settle(other));
    Caller caller{.thread = std::this_thread::get_id()};
    crl_op_t op = 0;
    expect_ok(crl_op_create(add, &caller, 1, &op));
    for (int round = 0; round < 20; ++round) {
      const auto in = values_of(rank, round, 5000);
      std::vector<std::int64_t> out(in.size()), out2(in.size());
      crl_request_h request = nullptr, beside = nullptr;
      expect_ok(crl_iallreduce(team, in.data(), out.data(), in.size(), CRL_INT64, op, &request));
      expect_ok(
          crl_iallreduce(other, in.data(), out2.data(), in.size(), CRL_INT64, CRL_SUM, &beside));
      const auto expected = sums_of(kRanks, round, in.size());
      EXPECT_TRUE(compute_until(out2, expected));
      expect_ok(crl_request_wait(&request));
      expect_ok(crl_request_wait(&beside));
      EXPECT_EQ(out, expected);
    }
    EXPECT_FALSE(caller.other);
    crl_op_free(op);
    crl_team_destroy(other);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// The servlet's thread dies with its rank; the others' finds it out, and they are told.
TEST(Servlet, TellsOfARankThatWasKilled) {
  constexpr int kRanks = 3;
  Meeting world(kRanks), meeting(kRanks);
  const std::vector<int> exits = run_processes(kRanks, [&](int rank) {
    crl_context_h context = make_served(world, rank, "on");
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    expect_ok(crl_barrier(team));
    if (rank == 1) raise(SIGKILL);
    const auto in = values_of(rank, 1, kStartedCount);
    std::vector<std::int64_t> out(kStartedCount);
    crl_request_h request = nullptr;
    crl_status_t status = start_allreduce({team, rank, kRanks, in.data(), out.data()}, &request);
    if (status == CRL_OK) status = crl_request_wait(&request);
    EXPECT_EQ(status, CRL_ERR_PEER_DEAD);
    EXPECT_EQ(crl_barrier(team), CRL_ERR_PEER_DEAD);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank == 1 ? -9 : 0) << "rank " << rank;
  }
}

TEST(ServletPlace, IsTheLastCoreThatNoRankMayRunOn) {
  cpu_set_t allowed, used;
  CPU_ZERO(&allowed);
  CPU_ZERO(&used);
  for (const int core : {1, 2, 3, 5}) CPU_SET(core, &allowed);
  for (const int core : {1, 5, 6}) CPU_SET(core, &used);
  ServletPlace place = place_servlet(allowed, used, {});
  EXPECT_TRUE(place.alone);
  EXPECT_EQ(CPU_COUNT(&place.cores), 1);
  EXPECT_TRUE(CPU_ISSET(3, &place.cores));
  CPU_SET(2, &used);
  CPU_SET(3, &used);
  place = place_servlet(allowed, used, {});
  EXPECT_FALSE(place.alone);
  EXPECT_TRUE(CPU_EQUAL(&place.cores, &allowed));
}

TEST(ServletPlace, IsNearTheNetworkIfNobodyRunsThere) {
  cpu_set_t allowed, used;
  CPU_ZERO(&allowed);
  CPU_ZERO(&used);
  for (const int core : {1, 2, 3, 5}) CPU_SET(core, &allowed);
  Cores near;
  for (const std::size_t core : {0, 1, 2}) near.set(core);
  ServletPlace place = place_servlet(allowed, used, near);
  EXPECT_TRUE(CPU_ISSET(2, &place.cores));
  CPU_SET(2, &used);
  place = place_servlet(allowed, used, near);
  EXPECT_TRUE(CPU_ISSET(1, &place.cores));
  CPU_SET(1, &used);  // a core of its own is worth more than a near one
  place = place_servlet(allowed, used, near);
  EXPECT_TRUE(place.alone && CPU_ISSET(5, &place.cores));
}

}  // namespace
}  // namespace carillon::test
