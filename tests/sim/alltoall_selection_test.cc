// SPDX-License-Identifier: Apache-2.0
//
// What alltoall_by_model picks between nodes, against the best of pairwise exchange, lanes and the
// layouts of Bruck's with several radixes, all simulated: 60 points of ranks and bytes, on nodes of
// one rank, of four and of sixteen, without lists and with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "machine/sheet.h"
#include "predict/predict.h"
#include "select/alltoall_model.h"
#include "select/select.h"

namespace carillon {
namespace {

struct Place {
  Rank ppn = 1;
  std::int32_t gather_entries = 1;
};

std::vector<AlgorithmChoice> candidates(Rank ranks) {
  std::vector<AlgorithmChoice> list{parse_choice("alltoall.pairwise").value(),
                                    parse_choice("alltoall.lanes").value()};
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != Collective::kAlltoall || !algorithm.traits.radix) continue;
    for (const Rank radix : {2, 3, 4, 6, 8, 16}) {
      if (radix <= ranks) list.push_back({&algorithm, {.k = radix}});
    }
  }
  return list;
}

class AlltoallSelection : public testing::TestWithParam<Place> {
 protected:
  double simulated_ns(const AlgorithmChoice& choice, const Shared& shared, const Limits& limits) {
    const Result<sim::Report> report = predict::simulate(choice, shared, limits, machine_);
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? static_cast<double>(report.value().latency_ps) / 1e3 : 0;
  }

  machine::Machine machine_ = machine::load("edr").value();
};

TEST_P(AlltoallSelection, IsWithinATenthOfTheBestNearlyAlways) {
  int points = 0, near = 0;
  std::string misses;
  for (const Rank ranks : {4, 7, 8, 13, 16, 24, 32, 48, 64, 100}) {
    for (const std::int64_t bytes : {8, 32, 128, 512, 2048, 8192}) {
      const Shared shared = predict::example_problem(Collective::kAlltoall, ranks, bytes);
      Limits limits;
      limits.gather_entries = GetParam().gather_entries;
      limits.list_costs = predict::list_costs(machine_);
      limits.nodes = predict::even_nodes(ranks, GetParam().ppn);
      if (limits.one_node()) limits.nodes = predict::even_nodes(ranks, 1);
      limits.slot_bytes = predict::slot_bytes(*limits.nodes);
      const AlgorithmChoice pick = select(shared, limits, default_rules());
      const double picked_ns = simulated_ns(pick, shared, limits);
      double best_ns = picked_ns;
      AlgorithmChoice best = pick;
      for (const AlgorithmChoice& each : candidates(ranks)) {
        const double ns = simulated_ns(each, shared, limits);
        if (ns >= best_ns) continue;
        best_ns = ns;
        best = each;
      }
      ++points;
      if (picked_ns <= 1.1 * best_ns) {
        ++near;
      } else {
        misses += std::to_string(ranks) + " ranks, " + std::to_string(bytes) +
                  " B: " + to_text(pick) + " takes " + std::to_string(picked_ns) +
                  " ns (by the model " + std::to_string(alltoall_model_ns(pick, shared, limits)) +
                  "), " + to_text(best) + " " + std::to_string(best_ns) + " (" +
                  std::to_string(alltoall_model_ns(best, shared, limits)) + ")\n";
      }
    }
  }
  std::printf("%d ranks on a node, lists of up to %d: %d of %d picks within a tenth\n",
              GetParam().ppn, GetParam().gather_entries, near, points);
  EXPECT_EQ(points, 60);
  EXPECT_GE(near * 10, points * 9) << near << " of " << points << "; the others:\n" << misses;
}

// Messages of 16 KiB and more, which slots of 6 KiB take in segments, one after another.
TEST(AlltoallModel, LongMessagesGoInSegments) {
  const Shared shared = predict::example_problem(Collective::kAlltoall, 256, 512);
  Limits limits;
  limits.nodes = predict::even_nodes(256, 1);
  EXPECT_EQ(alltoall_by_model(shared, limits).algorithm->id, "alltoall.bruck_zerocopy");
  limits.slot_bytes = predict::slot_bytes(*limits.nodes);
  EXPECT_EQ(alltoall_by_model(shared, limits).algorithm->id, "alltoall.pairwise");
}

// Longer lists than devices take at once go in parts, and that is what they are priced as.
TEST(AlltoallModel, AsksForNoMoreThanDevicesTake) {
  Limits asked{.gather_entries = 100, .request_entries = 3}, taken{.gather_entries = 3},
      unlimited{.gather_entries = 100};
  int others = 0;
  for (const Rank ranks : {16, 64, 256}) {
    for (Limits* const each : {&asked, &taken, &unlimited}) {
      each->nodes = predict::even_nodes(ranks, 1);
      each->slot_bytes = predict::slot_bytes(*each->nodes);
    }
    for (const std::int64_t bytes : {8, 64, 256, 512}) {
      const Shared shared = predict::example_problem(Collective::kAlltoall, ranks, bytes);
      EXPECT_EQ(alltoall_by_model(shared, asked), alltoall_by_model(shared, taken));
      for (const AlgorithmChoice& each : candidates(ranks)) {
        const double ns = alltoall_model_ns(each, shared, asked);
        EXPECT_EQ(ns, alltoall_model_ns(each, shared, taken)) << to_text(each);
        others += ns != alltoall_model_ns(each, shared, unlimited) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(others, 0);
}

INSTANTIATE_TEST_SUITE_P(Edr, AlltoallSelection,
                         testing::Values(Place{1, 1}, Place{4, 1}, Place{16, 1}, Place{1, 30},
                                         Place{4, 30}, Place{16, 30}),
                         [](const auto& test) {
                           return "ppn_" + std::to_string(test.param.ppn) + "_entries_" +
                                  std::to_string(test.param.gather_entries);
                         });

}  // namespace
}  // namespace carillon
