// SPDX-License-Identifier: Apache-2.0
//
// What holds of the simulator for every algorithm: the same again gives the same, more takes no
// less.
#include <gtest/gtest.h>

#include <vector>

#include "support/paper_machine.h"
#include "support/registry.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {
 protected:
  static sim::Report time(Rank ranks, std::int64_t count, const sim::Options& options,
                          bool two_sided = false, Rank ppn = 2) {
    const Algorithm& algorithm = *GetParam();
    const std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks), count * 8);
    const Result<sim::Job> job = sim_job(
        algorithm,
        {.collective = algorithm.collective, .ranks = ranks, .count = count, .element_bytes = 8},
        {.slot_bytes = 1024, .nodes = predict::even_nodes(ranks, ppn)}, {.two_sided = two_sided},
        {bytes, bytes, bytes, bytes});
    EXPECT_TRUE(job.ok()) << job.status().to_string();
    return job.ok() ? simulated(job.value(), paper(), options) : sim::Report{};
  }
};

// Also by the full simulation, which keeps the states and NICs of all ranks from the beginning to
// the end, where the other one does not if each has a node of its own.
TEST_P(EveryAlgorithm, TheSameAgainIsTheSame) {
  const sim::Options options{.skew_ps = 5000 * kNs, .seed = 7, .rank_times = true};
  sim::Options traced = options;
  traced.critical_path = true;
  std::int64_t spans = 0;
  traced.on_span = [&](const sim::Span&) { ++spans; };
  const bool has_two_sided = GetParam()->has_transfer();
  for (const Rank ppn : {2, 1}) {
    for (const bool two_sided : {false, has_two_sided}) {
      const sim::Report first = time(11, 500, options, two_sided, ppn);
      const sim::Report second = time(11, 500, options, two_sided, ppn);
      const sim::Report third = time(11, 500, traced, two_sided, ppn);
      EXPECT_GT(first.latency_ps, 0);
      EXPECT_EQ(first.rank_ps, second.rank_ps);
      EXPECT_EQ(first.rank_ps, third.rank_ps);
      EXPECT_EQ(first.activity_ps, third.activity_ps);
      EXPECT_EQ(first.messages, third.messages);
    }
  }
  EXPECT_GT(spans, 0);
}

TEST_P(EveryAlgorithm, MoreBytesTakeNoLess) {
  if (GetParam()->collective == Collective::kBarrier) return;
  // Long blocks it exchanges in pairs, which on few ranks takes less than its rounds with short
  // ones.
  const Rank ranks = GetParam()->id == "alltoallv.bruck_two_phase" ? 64 : 8;
  std::int64_t before = 0;
  for (const std::int64_t count : {1, 16, 256, 4096}) {
    const std::int64_t latency = time(ranks, count, {}).latency_ps;
    EXPECT_GE(latency, before) << count;
    before = latency;
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, testing::ValuesIn(all_algorithms()),
                         name_of_algorithm);

}  // namespace
}  // namespace carillon::test
