// SPDX-License-Identifier: Apache-2.0
//
// The simulator on nodes of several NUMA domains, where the times can be added up on paper.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "predict/predict.h"
#include "support/paper_machine.h"
#include "support/shapes.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kCrossing = 300 * kNs;  // of 1,000 bytes
constexpr std::int64_t kWrite = (10 + 4 + 60) * kNs;
constexpr std::int64_t kSeen = 80 * kNs, kSeenAcross = kSeen + 61 * kNs;
constexpr std::int64_t kWait = 10 * kNs;
constexpr std::int64_t kCopy = (31 + 50) * kNs;

Machine with_domains() {
  Machine m = paper();
  m.shared_memory.cross_latency_ps = 61 * kNs;
  m.shared_memory.cross_byte_fs = 300'000;
  return m;
}

std::vector<std::int64_t> rank_times(sim::Job job, const std::vector<Rank>& domains) {
  job.call.limits.domains = blocked(domains).nodes;
  return simulated(job, with_domains(), {.rank_times = true}).rank_ps;
}

void write_for_all(const Call& call, Builder& b) {
  const Range all{0, 1000};
  if (call.rank == 0) b.put_all(b.input(all));
  if (call.rank != 0) b.copy(b.output(all), b.slot(b.wait_all(0), all));
}

TEST(SimulatedDomains, AMessageToAnotherOneIsSlower) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(1, b.input({0, 40}));
    if (call.rank == 1) b.copy(b.output({0, 40}), b.slot(b.wait(0), {0, 40}));
  };
  const auto near = rank_times(hand_job(2, 2, emit), {2}),
             far = rank_times(hand_job(2, 2, emit), {1, 1});
  EXPECT_EQ(far[1] - near[1], (61 + 12) * kNs);
}

TEST(SimulatedDomains, RanksShareTheWayIntoTheirDomain) {
  const auto times = rank_times(hand_job(5, 5, write_for_all), {2, 2, 1});
  EXPECT_EQ(times[1], kWrite + kSeen + kWait + kCopy);
  EXPECT_EQ(times[2], kWrite + kSeenAcross + kWait + kCrossing + kCopy);
  EXPECT_EQ(times[3], kWrite + kSeenAcross + kWait + 2 * kCrossing + kCopy);
  EXPECT_EQ(times[4], times[2]);
}

TEST(SimulatedDomains, WhatWasWrittenForADomainIsReadThere) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put_domain(b.input({0, 1000}));
    if (call.rank == 1 || call.rank == 2) b.wait_domain(0);
  };
  const auto times = rank_times(hand_job(5, 5, emit), {3, 2});
  const std::int64_t read = kWrite + kSeen + kWait;
  EXPECT_EQ(times, (std::vector<std::int64_t>{kWrite, read, read, 0, 0}));
}

TEST(SimulatedDomains, WhatIsNotReadDoesNotCross) {
  const auto emit = [](const Call& call, Builder& b) {
    const Range all{0, 1000};
    if (call.rank == 0) b.put_all(b.input(all));
    if (call.rank == 0) return;
    const Message message = b.wait_all(0);
    if (call.rank == 2) b.copy(b.output(all), b.slot(message, all));
  };
  const auto times = rank_times(hand_job(4, 4, emit), {1, 3});
  const std::int64_t unread = kWrite + kSeenAcross + kWait;
  EXPECT_EQ(times, (std::vector<std::int64_t>{kWrite, unread, unread + kCrossing + kCopy, unread}));
}

// Two domains of two: the head reads across, and its neighbour what it has written then.
TEST(SimulatedDomains, ABroadcastCrossesOnce) {
  const auto time = [](const char* name) {
    const auto choice = parse_choice(name);
    EXPECT_TRUE(choice.ok()) << choice.status().to_string();
    Limits limits{.domain_costs = predict::domain_costs(with_domains()),
                  .nodes = blocked({4}).nodes,
                  .domains = blocked({2, 2}).nodes};
    const auto job = sim_job(*choice.value().algorithm,
                             {.collective = Collective::kBcast, .ranks = 4, .count = 1000}, limits);
    EXPECT_TRUE(job.ok()) << job.status().to_string();
    return simulated(job.value(), with_domains()).latency_ps;
  };
  const std::int64_t head = kWrite + kSeenAcross + kWait + kCrossing + kCopy;
  // What all wait for, and it does not read, comes over no way.
  EXPECT_EQ(time("bcast.domains"), head + kWrite + kSeen + 2 * kWait + kCopy);
  EXPECT_EQ(time("bcast.flat"), kWrite + kSeenAcross + kWait + 2 * kCrossing + kCopy);
}

}  // namespace
}  // namespace carillon::test
