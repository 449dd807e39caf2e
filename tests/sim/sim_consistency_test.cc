// SPDX-License-Identifier: Apache-2.0
//
// What MPI users expect of each other's collectives (J. L. Traff, W. Gropp, R. Thakur,
// "Self-consistent MPI performance guidelines", IEEE TPDS 2010), of the algorithms that are chosen,
// simulated on nodes of one rank and of several, and on one node: a collective is not slower than
// others that could be called in its place, more data or one more rank do not make it faster by
// much, and in place it is not slower by much.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "machine/sheet.h"
#include "predict/predict.h"
#include "select/select.h"

namespace carillon {
namespace {

using enum Collective;

// A sum of calls: (collective, bytes of its block).
using Calls = std::vector<std::pair<Collective, std::int64_t>>;

class Costs {
 public:
  Costs(const std::string& machine, Rank ppn)
      : machine_(machine::load(machine).value()), ppn_(ppn) {}

  /// Of the slowest rank, with the algorithms that are chosen.
  double us(const Calls& calls, Rank ranks) {
    double sum = 0;
    for (const auto& [collective, bytes] : calls) {
      double& known = known_[{collective, ranks, bytes}];
      if (known == 0) known = one_us(collective, ranks, bytes, false);
      sum += known;
    }
    return sum;
  }
  double in_place_us(Collective collective, Rank ranks, std::int64_t bytes) {
    return one_us(collective, ranks, bytes, true);
  }
  std::string chosen(const Calls& calls, Rank ranks) {
    std::string names;
    for (const auto& [collective, bytes] : calls) {
      names += (names.empty() ? "" : " + ") +
               std::string(choose(collective, ranks, bytes).algorithm->id) + " of " +
               std::to_string(bytes) + " B";
    }
    return names;
  }

 private:
  [[nodiscard]] Limits limits(Rank ranks) const {
    Limits limits{.nodes = predict::even_nodes(ranks, ppn_)};
    limits.slot_bytes = predict::slot_bytes(*limits.nodes);
    return limits;
  }
  AlgorithmChoice choose(Collective collective, Rank ranks, std::int64_t bytes) {
    return select(predict::example_problem(collective, ranks, bytes), limits(ranks),
                  default_rules());
  }
  double one_us(Collective collective, Rank ranks, std::int64_t bytes, bool in_place) {
    const auto report = predict::simulate(choose(collective, ranks, bytes),
                                          predict::example_problem(collective, ranks, bytes),
                                          limits(ranks), machine_, {}, {.in_place = in_place});
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? static_cast<double>(report.value().latency_ps) * 1e-6 : 0;
  }

  machine::Machine machine_;
  Rank ppn_;
  std::map<std::tuple<Collective, Rank, std::int64_t>, double> known_;
};

struct Guideline {
  Calls left, right;  // left may not be slower
};

std::vector<Guideline> guidelines(std::int64_t n, Rank p) {
  return {
      {{{kAllreduce, n}}, {{kReduce, n}, {kBcast, n}}},
      {{{kAllreduce, n * p}}, {{kReduceScatterBlock, n}, {kAllgather, n}}},
      {{{kReduce, n}}, {{kAllreduce, n}}},
      {{{kReduce, n * p}}, {{kReduceScatterBlock, n}, {kGather, n}}},
      {{{kBcast, n * p}}, {{kScatter, n}, {kAllgather, n}}},
      {{{kAllgather, n}}, {{kGather, n}, {kBcast, n * p}}},
      {{{kAllgather, n}}, {{kAlltoall, n}}},
      {{{kGather, n}}, {{kAllgather, n}}},
      {{{kScatter, n}}, {{kBcast, n * p}}},
      {{{kReduceScatterBlock, n}}, {{kReduce, n * p}, {kScatter, n}}},
      {{{kBarrier, 0}}, {{kAllreduce, 8}}},
  };
}

struct Place {
  const char* machine;
  Rank ppn;
  // How many times as long something may take as what could be called in its place, or as more
  // data; as on a rank more; and in place as out of place.
  double most_times, most_for_a_rank, most_in_place;
  Rank most_ranks = 64;
  [[nodiscard]] std::vector<Rank> ranks() const {
    std::vector<Rank> list = {2,  3,  4,  5,  7,  8,  13, 15, 16,  17,
                              24, 31, 32, 33, 48, 63, 64, 96, 127, 128};
    std::erase_if(list, [&](Rank each) { return each > most_ranks; });
    return list;
  }
};

class Consistency : public testing::TestWithParam<Place> {
 protected:
  Costs costs_{GetParam().machine, GetParam().ppn};
  void expect_not_slower(const Calls& left, Rank left_ranks, const Calls& right, Rank right_ranks,
                         double times) {
    const double left_us = costs_.us(left, left_ranks), right_us = costs_.us(right, right_ranks);
    EXPECT_LE(left_us, times * right_us)
        << left_us / right_us << ": " << costs_.chosen(left, left_ranks) << " takes " << left_us
        << " us on " << left_ranks << " ranks, " << costs_.chosen(right, right_ranks) << " "
        << right_us << " us on " << right_ranks;
  }
};

TEST_P(Consistency, NotSlowerThanWhatCouldBeCalledInItsPlace) {
  for (const Rank ranks : GetParam().ranks()) {
    for (const std::int64_t bytes : {8, 64, 512, 4096, 32768}) {
      for (const Guideline& guideline : guidelines(bytes, ranks)) {
        expect_not_slower(guideline.left, ranks, guideline.right, ranks, GetParam().most_times);
      }
    }
  }
}

TEST_P(Consistency, LessDataTakesNoLonger) {
  for (const Collective collective : {kBcast, kReduce, kAllreduce, kAllgather, kGather, kScatter,
                                      kReduceScatterBlock, kAlltoall}) {
    for (const Rank ranks : GetParam().ranks()) {
      for (std::int64_t bytes = 8; bytes < 262144; bytes *= 2) {
        expect_not_slower({{collective, bytes}}, ranks, {{collective, 2 * bytes}}, ranks,
                          GetParam().most_times);
      }
    }
  }
}

TEST_P(Consistency, OneRankLessTakesNotMuchLonger) {
  for (const Collective collective : {kBarrier, kBcast, kReduce, kAllreduce, kAllgather, kGather,
                                      kScatter, kReduceScatterBlock, kAlltoall}) {
    for (Rank ranks = 2; ranks <= GetParam().most_ranks; ++ranks) {
      for (const std::int64_t bytes : {8, 1024, 32768}) {
        expect_not_slower({{collective, bytes}}, ranks, {{collective, bytes}}, ranks + 1,
                          GetParam().most_for_a_rank);
      }
    }
  }
}

TEST_P(Consistency, InPlaceTakesNoLonger) {
  for (const Collective collective : {kAllreduce, kAllgather, kReduceScatterBlock, kAlltoall}) {
    for (const Rank ranks : GetParam().ranks()) {
      for (std::int64_t bytes = 8; bytes <= 32768; bytes *= 4) {
        const double with_us = costs_.in_place_us(collective, ranks, bytes);
        const double without_us = costs_.us({{collective, bytes}}, ranks);
        EXPECT_LE(with_us, GetParam().most_in_place * without_us)
            << with_us / without_us << ": " << costs_.chosen({{collective, bytes}}, ranks)
            << " takes " << with_us << " us in place, else " << without_us << ", on " << ranks
            << " ranks";
      }
    }
  }
}

// A root's own block is copied while the other's is on its way.
TEST(ConsistencyOfTwoRanks, LongBlocks) {
  for (const char* const machine : {"edr", "hdr"}) {
    for (const Rank ppn : {1, 2}) {
      Costs costs(machine, ppn);
      for (const std::int64_t bytes : {1 << 20, 1 << 22}) {
        EXPECT_LE(costs.us({{kScatter, bytes}}, 2), costs.us({{kBcast, 2 * bytes}}, 2));
        EXPECT_LE(costs.us({{kGather, bytes}}, 2), costs.us({{kAllgather, bytes}}, 2));
      }
    }
  }
}

// The selection goes by edr. Largest on a rank more is what a last node's few ranks send to each
// rank of full ones. docs/simulator.md says what the other figures come from.
INSTANTIATE_TEST_SUITE_P(
    Machines, Consistency,
    testing::Values(Place{"edr", 1, 1.16, 1.15, 1.18}, Place{"edr", 4, 1.15, 1.32, 1.21},
                    Place{"edr", 16, 1.16, 1.25, 1.18}, Place{"edr", 32, 1.23, 1.35, 1.18, 128},
                    Place{"edr", 64, 1.19, 1.15, 1.1}, Place{"hdr", 1, 1.23, 1.15, 1.18},
                    Place{"hdr", 4, 1.26, 1.4, 1.21}, Place{"hdr", 16, 1.16, 1.32, 1.22},
                    Place{"hdr", 32, 1.18, 1.27, 1.22}, Place{"hdr", 64, 1.18, 1.15, 1.1}),
    [](const auto& test) {
      return std::string(test.param.machine) + "_ppn_" + std::to_string(test.param.ppn);
    });

}  // namespace
}  // namespace carillon
