// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are alike: what is simulated with one emission per class is, rank by rank, what is
// simulated with one per rank.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/registry.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

using Peers = sim::Symmetry::Peers;

struct Case {
  Rank ranks = 2, root = 0;
  std::int64_t count = 8;
  std::int32_t k = 0;
  bool commutative = true, two_sided = false;
  [[nodiscard]] std::string text() const {
    return std::to_string(ranks) + " ranks, root " + std::to_string(root) + ", " +
           std::to_string(count) + " elements, k " + std::to_string(k) +
           (commutative ? "" : ", ordered") + (two_sided ? ", two-sided" : "");
  }
};

Result<sim::Job> job_of(const Algorithm& algorithm, const Case& c) {
  const Shared shared{.collective = algorithm.collective,
                      .ranks = c.ranks,
                      .root = has_root(algorithm.collective) ? c.root : 0,
                      .count = c.count,
                      .element_bytes = 8,
                      .commutative = c.commutative};
  // A small slot, so that there are segments, and messages that wait for room.
  return sim_job(algorithm, shared, {.slot_bytes = 256, .nodes = predict::even_nodes(c.ranks, 1)},
                 {.k = c.k, .two_sided = c.two_sided});
}

// Ranks begin at random times, so that what one does differently shows in its time.
void compare(const Algorithm& algorithm, const Case& c, std::int64_t whole_positions) {
  Result<sim::Job> job = job_of(algorithm, c);
  if (!job.ok()) return;  // not this k, or this operator
  if (job.value().symmetry.peers == Peers::kOwn) return;
  machine::Machine machine;
  machine.in_switch.ports = 3;
  machine.in_switch.window = 2;
  machine.in_switch.operand_bytes = 100;
  const sim::Options options{.skew_ps = 3'000'000,
                             .whole_positions = whole_positions,
                             .window_positions = 3,
                             .rank_times = true};
  const sim::Report shared = simulated(job.value(), machine, options);
  job.value().symmetry = {};
  const sim::Report own = simulated(job.value(), machine, options);
  ASSERT_EQ(shared.rank_ps, own.rank_ps) << c.text();
  ASSERT_EQ(shared.latency_ps, own.latency_ps) << c.text();
  ASSERT_EQ(shared.messages, own.messages) << c.text();
  ASSERT_EQ(shared.bytes, own.bytes) << c.text();
  ASSERT_EQ(shared.activity_ps, own.activity_ps) << c.text();
}

class SymmetryOf : public testing::TestWithParam<const Algorithm*> {};

TEST_P(SymmetryOf, ChangesNothing) {
  const Algorithm& algorithm = *GetParam();
  if (algorithm.collective == Collective::kAlltoallv) GTEST_SKIP() << "its ranks differ";
  for (const Rank ranks : {2, 3, 7, 8, 13, 16, 27}) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{ranks} * 8}) {
      for (const std::int32_t k : std::set<std::int32_t>{0, algorithm.k.max > 0 ? 3 : 0}) {
        for (const Rank root : std::set<Rank>{0, has_root(algorithm.collective) ? ranks / 2 : 0}) {
          for (const bool flag : {false, true}) {
            compare(algorithm, {ranks, root, count, k, flag, flag}, 512);
            compare(algorithm, {ranks, root, count, k, true, flag}, 0);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, SymmetryOf, testing::ValuesIn(all_algorithms()),
                         name_of_algorithm);

// Those that large simulations are made of share their parts: a tree of a million ranks has some
// twenty classes.
TEST(Symmetry, KnowsTreesAndHypercubes) {
  const auto classes = [](const char* id, Rank ranks) {
    const Algorithm& algorithm = *find_algorithm(id);
    const Result<sim::Job> job = job_of(algorithm, {.ranks = ranks});
    EXPECT_TRUE(job.ok());
    const sim::Symmetry& symmetry = job.value().symmetry;
    if (symmetry.peers == Peers::kOwn) return std::size_t{0};
    std::set<std::int64_t> all;
    for (Rank rank = 0; rank < ranks; ++rank) all.insert(symmetry.class_of(rank));
    return all.size();
  };
  EXPECT_EQ(classes("bcast.binomial", 1 << 20), 21U);
  EXPECT_EQ(classes("allreduce.recursive_doubling", 1 << 20), 1U);
  EXPECT_EQ(classes("allreduce.recursive_doubling", 1000), 0U);
}

// A schedule that is wrong is found out, though its ranks sleep until something comes.
TEST(Symmetry, SleepersThatWaitForEverAreReported) {
  sim::Job job = hand_job(3, 1, [](const Call& call, Builder& b) {
    if (call.rank == 2) b.wait(1, 0);
  });
  job.symmetry = {Peers::kTurned, [](Rank rank) { return std::int64_t{rank}; }};
  const Result<sim::Report> report = sim::simulate(job, machine::Machine{}, {});
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("rank 2 waits for rank 1"), std::string::npos)
      << report.status().to_string();
}

}  // namespace
}  // namespace carillon::test
