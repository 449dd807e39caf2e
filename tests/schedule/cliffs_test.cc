// SPDX-License-Identifier: Apache-2.0
//
// No cliffs in what is chosen: one rank more or less, or one element more or less, must not make a
// collective much slower. In particular a rank count beside a power of two, and counts smaller
// than the number of ranks, which leave some ranks' parts of a divided vector empty.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/sheet.h"
#include "predict/predict.h"
#include "select/select.h"

namespace carillon {
namespace {

constexpr double kMostTimes = 3;
constexpr double kMostTimesCrowded = 3.5;  // chosen for few messages, simulated with a core each
constexpr double kMostTimesFewer = 1.05;   // of a shorter vector

struct Problem {
  Collective collective = Collective::kBarrier;
  Rank ranks = 1;
  std::int64_t count = 0;
  bool crowded = false;
  Rank per_node = 0;  // 0: all are on one node
};

// Nodes are full, one after another; the last one takes what is left.
std::shared_ptr<const Nodes> nodes_of(const Problem& problem) {
  if (problem.per_node == 0) return nullptr;
  std::vector<std::int32_t> node_of;
  for (Rank rank = 0; rank < problem.ranks; ++rank) node_of.push_back(rank / problem.per_node);
  return std::make_shared<Nodes>(node_of);
}

// With the algorithm that is chosen, whose id is kept for messages.
double cost_ns(const Problem& problem, std::string* id) {
  static const machine::Machine kMachine = machine::load("edr").value();
  Shared shared{.collective = problem.collective,
                .ranks = problem.ranks,
                .root = problem.ranks / 3,
                .count = problem.count,
                .element_bytes = 4};
  if (!has_root(problem.collective)) shared.root = 0;
  const Limits limits{.crowded = problem.crowded, .nodes = nodes_of(problem)};
  const AlgorithmChoice choice = select(shared, limits, default_rules());
  *id = std::string(choice.algorithm->id);
  const auto report = predict::simulate(choice, shared, limits, kMachine);
  EXPECT_TRUE(report.ok()) << *id << ": " << report.status().to_string();
  return report.ok() ? static_cast<double>(report.value().latency_ps) * 1e-3 : 0;
}

// At most so many times as long, and a little.
void expect_not_slower(const Problem& from, const Problem& to, double times, double more_ns) {
  std::string from_id, to_id;
  const double from_ns = cost_ns(from, &from_id), to_ns = cost_ns(to, &to_id);
  EXPECT_LE(to_ns, times * from_ns + more_ns)
      << collective_name(to.collective) << (to.crowded ? ", crowded" : "") << ": " << to.ranks
      << " ranks" << (to.per_node == 0 ? "" : " of several nodes") << ", " << to.count
      << " elements (" << to_id << ") beside " << from.ranks << " ranks, " << from.count
      << " elements (" << from_id << ")";
}

// Nobody shares a core in the simulation, for which some of the choices are made: a factor of two
// between two algorithms may be right.
void expect_no_cliff(const Problem& from, const Problem& to) {
  expect_not_slower(from, to, to.crowded ? kMostTimesCrowded : kMostTimes, 100);
}

class Cliffs : public testing::TestWithParam<Collective> {};

TEST_P(Cliffs, BetweenNeighbouringRankCounts) {
  for (const bool crowded : {false, true}) {
    for (const std::int64_t count : {2, 400, 1000, 4000, 30000}) {
      std::vector<Rank> sizes;
      for (Rank ranks = 3; ranks <= 40; ++ranks) sizes.push_back(ranks);
      for (const Rank ranks : {63, 64, 65}) sizes.push_back(ranks);
      for (std::size_t i = 1; i < sizes.size(); ++i) {
        if (sizes[i] != sizes[i - 1] + 1) continue;
        const Problem less{GetParam(), sizes[i - 1], count, crowded};
        const Problem more{GetParam(), sizes[i], count, crowded};
        expect_no_cliff(less, more);
        expect_no_cliff(more, less);
      }
    }
  }
}

TEST_P(Cliffs, BesideAPowerOfTwo) {
  const Problem at_power{GetParam(), 128, 300, false};
  for (const Rank ranks : {127, 129}) {
    expect_no_cliff(at_power, {GetParam(), ranks, 300, false});
  }
}

// A rank alone on a node, a node with one rank less, and a node more or less.
TEST_P(Cliffs, BesideFullNodes) {
  for (const Rank per_node : {5, 32}) {
    for (const Rank nodes : {1, 2, 4}) {
      const Rank full = per_node * nodes;
      for (const std::int64_t count : {2, 1000, 30000}) {
        const Problem at_full{GetParam(), full, count, false, per_node};
        for (const Rank ranks : {full - 1, full + 1}) {
          // Who shares a node with all others is much nearer to them than who does not.
          if (ranks > full && nodes == 1) continue;
          const Problem beside{GetParam(), ranks, count, false, per_node};
          expect_no_cliff(at_full, beside);
          expect_no_cliff(beside, at_full);
        }
      }
    }
  }
}

TEST_P(Cliffs, FewerElementsThanRanks) {
  for (const bool crowded : {false, true}) {
    for (Rank ranks = 2; ranks <= 64; ++ranks) {
      for (const std::int64_t count : {ranks, ranks - 1, ranks / 2, 1}) {
        expect_not_slower({GetParam(), ranks, ranks + 1, crowded},
                          {GetParam(), ranks, count, crowded}, kMostTimesFewer, 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Chosen, Cliffs,
                         testing::Values(Collective::kBarrier, Collective::kBcast,
                                         Collective::kReduce, Collective::kAllreduce,
                                         Collective::kAllgather, Collective::kGather,
                                         Collective::kScatter, Collective::kReduceScatterBlock,
                                         Collective::kAlltoall),
                         [](const auto& test) { return std::string(collective_name(test.param)); });

}  // namespace
}  // namespace carillon
