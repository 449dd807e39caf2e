// SPDX-License-Identifier: Apache-2.0
//
// Ranks that share cores, on teams small enough to add the times up on paper.
#include <gtest/gtest.h>

#include "machine/costs.h"
#include "support/registry.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

using machine::Machine;

constexpr std::int64_t kNs = 1000;
constexpr std::int64_t kCopy = 100 * kNs, kOverhead = 10 * kNs, kSeen = 80 * kNs;
constexpr std::int64_t kSwitch = 500 * kNs;

Machine with_cores(std::int32_t cores, std::int64_t switch_ps = kSwitch) {
  Machine m;
  m.memory = {.copy_ps = kCopy, .copy_run_ps = 0, .copy_cached_fs = 0};
  m.shared_memory = {.latency_ps = kSeen, .overhead_ps = kOverhead, .line_ps = 0};
  m.node = {.cores = cores, .switch_ps = switch_ps};
  m.in_switch = {.ports = 4, .send_ps = kOverhead, .receive_ps = kOverhead};
  return m;
}

void copy_twice(const Call& /*call*/, Builder& b) {
  b.copy(b.output({0, 8}), b.input({0, 8}));
  b.copy(b.output({8, 8}), b.input({8, 8}));
}

TEST(Cores, EachRankEndsWhatItHasBegun) {
  // Ranks 0 and 2 share a core: the second one begins when the first has nothing left to do.
  sim::Options options{.rank_times = true};
  const sim::Report report = simulated(hand_job(4, 4, copy_twice), with_cores(2), options);
  const std::int64_t first = 2 * kCopy, second = first + kSwitch + 2 * kCopy;
  EXPECT_EQ(report.rank_ps, (std::vector<std::int64_t>{first, first, second, second}));
}

TEST(Cores, EnoughOfThemAreNotShared) {
  EXPECT_EQ(simulated(hand_job(4, 4, copy_twice), with_cores(4)).latency_ps, 2 * kCopy);
  EXPECT_EQ(simulated(hand_job(4, 2, copy_twice), with_cores(2)).latency_ps, 2 * kCopy);
  // Without the cost of a switch, a machine is not known to share them.
  EXPECT_EQ(simulated(hand_job(4, 4, copy_twice), with_cores(2, 0)).latency_ps, 2 * kCopy);
}

// Rank 0 puts, rank 1 answers.
void there_and_back(const Call& call, Builder& b) {
  if (call.rank == 0) {
    b.put(1, b.input({0, 8}));
    b.wait(1);
  } else {
    b.wait(0);
    b.put(0, b.input({0, 8}));
  }
}

TEST(Cores, WhoWaitsLeavesTheCore) {
  // What is on its way is there before the switch is over.
  const std::int64_t one_way = kOverhead + kSwitch + kOverhead;
  EXPECT_EQ(simulated(hand_job(2, 2, there_and_back), with_cores(1)).latency_ps, 2 * one_way);
  const std::int64_t apart = kOverhead + kSeen + kOverhead;
  EXPECT_EQ(simulated(hand_job(2, 2, there_and_back), with_cores(2)).latency_ps, 2 * apart);
}

// Ranks 0 and 2 share a core and wait for rank 1, which has one of its own: it copies first, puts
// to rank 2 and then to rank 0.
template <int kCopies>
void late_puts(const Call& call, Builder& b) {
  if (call.rank == 1) {
    for (int i = 0; i < kCopies; ++i) b.copy(b.output({0, 8}), b.input({0, 8}));
    b.put(2, b.input({0, 8}));
    b.put(0, b.input({0, 8}));
  } else {
    b.wait(1);
  }
}

std::vector<std::int64_t> times_of(void (*emit)(const Call&, Builder&), std::int64_t seen_ps,
                                   Rank ranks = 3) {
  Machine m = with_cores(2);
  m.shared_memory.latency_ps = seen_ps;
  return simulated(hand_job(ranks, ranks, emit), m, sim::Options{.rank_times = true}).rank_ps;
}

TEST(Cores, WhoWaitTakeTurnsInLooking) {
  // Rank 2 first looks after one switch; then rank 0 after two, rank 2 after three, and so on.
  const auto until_third = times_of(late_puts<12>, kSeen);
  EXPECT_EQ(until_third[2], 3 * kSwitch + kOverhead);
  // What rank 0 waits for is there by its fourth turn, which comes after what rank 2 has done.
  EXPECT_EQ(until_third[0], 3 * kSwitch + kOverhead + kSwitch + kOverhead);
  const auto after_third = times_of(late_puts<15>, kSeen);  // which it is too late for
  EXPECT_EQ(after_third[0], 4 * kSwitch + kOverhead);
  EXPECT_EQ(after_third[2], 4 * kSwitch + kOverhead + kSwitch + kOverhead);
}

TEST(Cores, WhoLeavesHasLookedOnceMore) {
  constexpr int kCopies = 4;
  constexpr std::int64_t kSent = kCopies * kCopy + kOverhead;
  // Rank 2 has nothing more to do after the first switch, and looks as long as a message takes it.
  const std::int64_t last = kSwitch + kOverhead;
  EXPECT_EQ(times_of(late_puts<kCopies>, last - kSent)[2], last + kOverhead);
  // Too late, and then rank 0's turn comes first, for which there is something by then, too.
  EXPECT_EQ(times_of(late_puts<kCopies>, last - kSent + 1)[2],
            2 * kSwitch + kOverhead + kSwitch + kOverhead);
}

void late_put_to_one(const Call& call, Builder& b) {
  if (call.rank < 2) {
    for (int i = 0; i < 15 * call.rank + 1; ++i) b.copy(b.output({0, 8}), b.input({0, 8}));
  }
  if (call.rank == 1) b.put(2, b.input({0, 8}));
  if (call.rank == 2) b.wait(1);
}

TEST(Cores, WhoHasEndedTakesNoTurns) {
  const auto times = times_of(late_put_to_one, kSeen);
  EXPECT_EQ(times[0], kCopy);
  EXPECT_EQ(times[2], 16 * kCopy + kOverhead + kSeen + kOverhead);
}

// Ranks 0, 2, 4 and 6 share a core.
void late_puts_to_four(const Call& call, Builder& b) {
  if (call.rank == 1) {
    for (int i = 0; i < 25; ++i) b.copy(b.output({0, 8}), b.input({0, 8}));
    for (const Rank to : {4, 0, 2, 6}) b.put(to, b.input({0, 8}));
  } else if (call.rank % 2 == 0) {
    b.wait(1);
  }
}

TEST(Cores, TheNextOneLooksAfterWhoHasEnded) {
  const auto times = times_of(late_puts_to_four, kSeen, 7);
  EXPECT_EQ(times[4], 6 * kSwitch + kOverhead);  // its second turn; that of rank 2 was too early
  EXPECT_EQ(times[6], times[4] + kSwitch + kOverhead);
  EXPECT_EQ(times[0], times[6] + kSwitch + kOverhead);
  EXPECT_EQ(times[2], times[0] + kSwitch + kOverhead);
}

TEST(Cores, NodesOfOneHostShareThem) {
  Machine m = with_cores(1);
  m.network.latency_ps = 1;
  m.network.per_byte_fs = 0;
  const std::int64_t apart = simulated(hand_job(2, 1, there_and_back), m).latency_ps;
  m.node.nodes_per_host = 2;
  EXPECT_EQ(simulated(hand_job(2, 1, there_and_back), m).latency_ps,
            apart - 2 * m.network.latency_ps + 2 * kSwitch);
}

// The times of one rank fit, those of all ranks together do not.
TEST(Cores, SumsAreWiderThanTimes) {
  Machine m = with_cores(16, 0);
  m.memory.copy_ps = INT64_MAX / 16;
  const sim::Report report = simulated(hand_job(16, 16, copy_twice), m);
  EXPECT_EQ(report.latency_ps, 2 * (INT64_MAX / 16));
  EXPECT_EQ(static_cast<double>(report.rank_sum_ps), 32 * static_cast<double>(INT64_MAX / 16));
  EXPECT_EQ(report.activity_ps[static_cast<std::size_t>(sim::Activity::kCopy)], report.rank_sum_ps);
}

// Rank 0 puts three messages.
constexpr std::int64_t kBlock = 1000;
void three_puts(const Call& call, Builder& b) {
  for (int i = 0; i < 3; ++i) {
    if (call.rank == 0) b.put(1, b.input({i * kBlock, kBlock}));
    if (call.rank == 1) b.wait(0);
  }
}

// All three wait when the reader's turn comes: of the first one all has left the cache, of the
// second one half.
TEST(Cores, ReadersPayForWhatWaits) {
  Machine m = with_cores(1);
  m.node.nodes_per_host = 2;
  m.network.latency_ps = 1;
  m.network.per_byte_fs = 0;
  const std::int64_t without = simulated(hand_job(2, 1, three_puts), m).latency_ps;
  m.node.shared_ps = 7 * kNs;
  m.node.shared_byte_fs = 2000;
  m.node.backlog_bytes = 3 * kBlock / 2;
  m.node.backlog_byte_fs = 11'000;
  const std::int64_t more = 3 * (7 * kNs + kBlock * 2) + kBlock * 3 / 2 * 11;
  EXPECT_EQ(simulated(hand_job(2, 1, three_puts), m).latency_ps, without + more);
  m.node.cores = 2;
  const std::int64_t apart = simulated(hand_job(2, 1, three_puts), m).latency_ps;
  m.node.shared_ps = m.node.shared_byte_fs = m.node.backlog_byte_fs = 0;
  EXPECT_EQ(simulated(hand_job(2, 1, three_puts), m).latency_ps, apart);
}

// All algorithms end on one core, whatever the order; and seven cores are not slower than one.
TEST(Cores, EveryAlgorithm) {
  constexpr Rank kRanks = 7;
  const std::vector<std::int64_t> bytes(kRanks, 4096), zeros(kRanks, 0);
  for (const Algorithm* each : test::all_algorithms()) {
    const Algorithm& algorithm = *each;
    const Shared shared = predict::example_problem(algorithm.collective, kRanks, 4096);
    for (const Rank ppn : {1, 3, 7}) {
      const Limits limits{.nodes = predict::even_nodes(kRanks, ppn)};
      if (!suits({&algorithm, {}}, shared, limits)) continue;
      const Result<sim::Job> job =
          sim_job(algorithm, shared, limits, {}, {bytes, zeros, bytes, zeros});
      ASSERT_TRUE(job.ok()) << job.status().to_string();
      Machine m = with_cores(1);
      m.node.nodes_per_host = kRanks;
      const std::int64_t one = simulated(job.value(), m).latency_ps;
      m.node.cores = kRanks;
      EXPECT_LT(simulated(job.value(), m).latency_ps, one) << algorithm.id << ", " << ppn;
    }
  }
}

}  // namespace
}  // namespace carillon::test
