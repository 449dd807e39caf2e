// SPDX-License-Identifier: Apache-2.0
//
// threaded = 1: several threads of a rank use its context at once, each with teams of its own.
// With ranks as processes, and with ranks as threads as well, for the thread sanitizer.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 2;
constexpr int kThreads = 3;

// What one thread of a rank does on a team of its own, made by itself.
void use_context(crl_context_h context, Meeting& meeting, int rank, int thread, int rounds) {
  crl_team_h team = make_team(context, meeting.oob(rank));
  crl_request_h early = nullptr;  // before the team is ready
  expect_ok(crl_ibarrier(team, &early));
  void* const heap = crl_alloc(context, 80000);
  auto* const large = static_cast<std::int64_t*>(heap);
  ASSERT_NE(heap, nullptr);
  for (int round = 0; round < rounds; ++round) {
    const auto count = static_cast<std::size_t>(round % 7 == 0 ? 3000 : 5);
    const int tag = round * kThreads + thread;
    const auto mine = values_of(rank, tag, count);
    std::vector<std::int64_t> sums(count), later(count);
    crl_request_h request = nullptr;
    expect_ok(crl_iallreduce(team, mine.data(), later.data(), count, CRL_INT64, CRL_SUM, &request));
    expect_ok(crl_allreduce(team, mine.data(), sums.data(), count, CRL_INT64, CRL_SUM));
    EXPECT_EQ(sums, sums_of(kRanks, tag, count));
    if (round % 10 == 0) {
      const int root = round / 10 % kRanks;
      for (int i = 0; i < 10000; ++i) large[i] = rank == root ? value_of(root, tag, i) : 0;
      expect_ok(crl_bcast(team, large, 80000, root));
      EXPECT_EQ(large[9999], value_of(root, tag, 9999));
    }
    if (round % 3 == 0) {
      crl_status_t status = CRL_IN_PROGRESS;
      while (status == CRL_IN_PROGRESS) status = crl_request_test(&request);
      expect_ok(status);
    } else {
      expect_ok(crl_request_wait(&request));
    }
    EXPECT_EQ(later, sums);
    if (round % 25 == 0) expect_ok(crl_context_progress(context));
    if (testing::Test::HasFailure()) break;
  }
  expect_ok(crl_request_wait(&early));
  crl_free(context, heap);
  crl_team_destroy(team);
}

struct Job {
  Meeting world{kRanks};
  std::vector<std::unique_ptr<Meeting>> meetings;
  Job() {
    for (int i = 0; i < kThreads; ++i) meetings.push_back(std::make_unique<Meeting>(kRanks));
  }
  void run(int rank, int rounds) {
    crl_context_h context = make_context(world, rank, true);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        use_context(context, *meetings[static_cast<std::size_t>(thread)], rank, thread, rounds);
      });
    }
    for (std::thread& thread : threads) thread.join();
    crl_context_destroy(context);
  }
};

TEST(Threaded, RanksAreProcesses) {
  Job job;
  expect_processes_ok(kRanks, [&](int rank) { job.run(rank, 1500); });
}

TEST(Threaded, RanksAreThreads) {
  Job job;
  run_threads(kRanks, [&](int rank) { job.run(rank, 200); });
}

// Contexts that are not threaded: one thread each, sharing a process and its mapping.
TEST(RanksAreThreads, ManyContextsOneAfterTheOther) {
  for (int round = 0; round < 10; ++round) {
    Meeting world(3), meeting(3);
    run_threads(3, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      for (int i = 0; i < 20; ++i) {
        crl_team_h team = make_team(context, meeting.oob(rank));
        std::int64_t value = rank == i % 3 ? i : -1;
        for (int j = 0; j < 6; ++j) expect_ok(crl_bcast(team, &value, 8, i % 3));
        EXPECT_EQ(value, i);
        expect_ok(crl_barrier(team));
        crl_team_destroy(team);
      }
      crl_context_destroy(context);
    });
  }
}

// The contexts of one job are made, used and destroyed while those of another one are.
TEST(RanksAreThreads, TwoJobsAtOnce) {
  constexpr int kJobs = 2;
  std::vector<std::unique_ptr<Meeting>> worlds, meetings;
  for (int i = 0; i < kJobs; ++i) {
    worlds.push_back(std::make_unique<Meeting>(kRanks));
    meetings.push_back(std::make_unique<Meeting>(kRanks));
  }
  run_threads(kJobs * kRanks, [&](int thread) {
    const auto job = static_cast<std::size_t>(thread / kRanks);
    const int rank = thread % kRanks;
    for (int round = 0; round < 10; ++round) {
      crl_context_h context = make_context(*worlds[job], rank);
      crl_team_h team = make_team(context, meetings[job]->oob(rank));
      const auto mine = values_of(rank, round, 5);
      std::vector<std::int64_t> sums(mine.size());
      expect_ok(crl_allreduce(team, mine.data(), sums.data(), sums.size(), CRL_INT64, CRL_SUM));
      EXPECT_EQ(sums, sums_of(kRanks, round, sums.size()));
      crl_team_destroy(team);
      crl_context_destroy(context);
    }
  });
}

}  // namespace
}  // namespace carillon::test
