// SPDX-License-Identifier: Apache-2.0
//
// What MPI users expect of each other's collectives (J. L. Traff, W. Gropp, R. Thakur,
// "Self-consistent MPI performance guidelines", IEEE TPDS 2010), of the algorithms that are chosen,
// simulated on nodes of one rank and of several, and on one node: a collective is not slower than
// others that could be called in its place nor than its variant of counts and displacements, more
// data or one more rank do not make it faster by much, a vector does not take much longer than its
// halves one after the other, and in place it is not slower by much. Slow/...: teams of 192 to 512.
// Machines have turns: one in three, and one in two of Slow's.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "machine/sheet.h"
#include "predict/predict.h"
#include "select/select.h"
#include "support/turn.h"

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
  /// Of one reduction of so many bytes that a rank has.
  [[nodiscard]] double reduce_us(std::int64_t bytes) const {
    const machine::Memory& memory = machine_.memory;
    return static_cast<double>(memory.reduce_ps + bytes * memory.reduce_cached_fs / 1000) * 1e-6;
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
    // The same block for, and from, each rank.
    std::vector<std::int64_t> lengths, offsets;
    for (Rank rank = 0; has_tables(collective) && rank < ranks; ++rank) {
      lengths.push_back(bytes);
      offsets.push_back(collective == kReduceScatter ? 0 : bytes * rank);
    }
    std::vector<std::int64_t> send_offsets = offsets;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      send_offsets[i] = bytes * static_cast<std::int64_t>(i);
    }
    const Local local{.in_place = in_place, .tables = {lengths, send_offsets, lengths, offsets}};
    const auto report = predict::simulate(choose(collective, ranks, bytes),
                                          predict::example_problem(collective, ranks, bytes),
                                          limits(ranks), machine_, {}, local);
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    return report.ok() ? static_cast<double>(report.value().latency_ps) * 1e-6 : 0;
  }

  machine::Machine machine_;
  Rank ppn_;
  std::map<std::tuple<Collective, Rank, std::int64_t>, double> known_;
};

constexpr std::int64_t kCachedBytes = 262144;

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

std::vector<Guideline> variants(std::int64_t n) {
  return {
      {{{kAllgather, n}}, {{kAllgatherv, n}}},
      {{{kGather, n}}, {{kGatherv, n}}},
      {{{kScatter, n}}, {{kScatterv, n}}},
      {{{kAlltoall, n}}, {{kAlltoallv, n}}},
      {{{kReduceScatterBlock, n}}, {{kReduceScatter, n}}},
  };
}

// How many times as long something may take
struct Tolerances {
  double most_times;       // as what could be called in its place, or as with more data;
  double most_for_a_rank;  // as on a rank more;
  double most_in_place;    // in place as out of place;
  double most_regular;     // as its variant of counts and displacements;
  double most_for_halves;  // as its halves;
  double most_of_scans;    // if it is a scan.
};

struct Place {
  const char* machine;
  Rank ppn;
  Tolerances tolerances;
  std::vector<Rank> ranks = {2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64};
  bool large = false;
  [[nodiscard]] std::vector<Rank> ranks_and_one_less() const {
    std::vector<Rank> list;
    if (!large) {
      // All up to 64; beyond, those around a full node.
      for (Rank each = 2; each < 64; ++each) list.push_back(each);
      if (ranks.back() > 64)
        list.insert(list.end(), {64, 65, 66, 67, 95, 96, 97, 98, 127});
      else
        list.push_back(64);
      return list;
    }
    for (const Rank each : ranks) {
      list.push_back(each - 1);
      list.push_back(each);
    }
    return list;
  }
  [[nodiscard]] std::int64_t longest() const { return large ? 512 : 262144; }
};
const std::vector<Rank> kTo128 = {2,  3,  4,  5,  7,  8,  13, 15, 16,  17,
                                  24, 31, 32, 33, 48, 63, 64, 96, 127, 128};
const std::vector<Rank> kTo512 = {192, 256, 384, 512};

// One for all tests of a machine: what one has simulated the next need not.
Costs& costs_of(const Place& place) {
  static std::map<std::pair<std::string, Rank>, Costs> all;
  return all.try_emplace({place.machine, place.ppn}, place.machine, place.ppn).first->second;
}

class Consistency : public testing::TestWithParam<Place> {
 protected:
  Costs& costs_ = costs_of(GetParam());
  [[nodiscard]] static const Tolerances& most() { return GetParam().tolerances; }
  // The right side, and `own_us` of a rank's own work.
  void expect_not_slower(const Calls& left, Rank left_ranks, const Calls& right, Rank right_ranks,
                         double times, double own_us = 0) {
    const double left_us = costs_.us(left, left_ranks);
    const double right_us = costs_.us(right, right_ranks) + own_us;
    EXPECT_LE(left_us, times * right_us)
        << left_us / right_us << ": " << costs_.chosen(left, left_ranks) << " takes " << left_us
        << " us on " << left_ranks << " ranks, " << costs_.chosen(right, right_ranks) << " "
        << right_us << " us on " << right_ranks;
  }
  // body(ranks, bytes), with blocks of some lengths or of all powers of `factor`.
  template <typename Body>
  static void for_some(Body body) {
    for (const Rank ranks : GetParam().ranks) {
      for (const std::int64_t bytes : {8, 64, 512, 4096, 32768}) {
        if (bytes <= GetParam().longest()) body(ranks, bytes);
      }
    }
  }
  template <typename Body>
  static void for_all(std::int64_t factor, std::int64_t longest, Body body) {
    for (const Rank ranks : GetParam().ranks) {
      for (std::int64_t bytes = 8; bytes <= std::min(longest, GetParam().longest());
           bytes *= factor) {
        body(ranks, bytes);
      }
    }
  }
};

TEST_P(Consistency, NotSlowerThanWhatCouldBeCalledInItsPlace) {
  for_some([&](Rank ranks, std::int64_t bytes) {
    for (const Guideline& guideline : guidelines(bytes, ranks)) {
      expect_not_slower(guideline.left, ranks, guideline.right, ranks, most().most_times);
    }
    for (const Guideline& guideline : variants(bytes)) {
      expect_not_slower(guideline.left, ranks, guideline.right, ranks, most().most_regular);
    }
  });
}

TEST_P(Consistency, LessDataTakesNoLonger) {
  for (const Collective collective : {kBcast, kReduce, kAllreduce, kAllgather, kGather, kScatter,
                                      kReduceScatterBlock, kAlltoall}) {
    for_all(2, GetParam().longest() / 2, [&](Rank ranks, std::int64_t bytes) {
      const Calls half{{collective, bytes}}, whole{{collective, 2 * bytes}};
      expect_not_slower(half, ranks, whole, ranks, most().most_times);
      // While all blocks fit in caches, as their halves do.
      if (bytes * ranks > kCachedBytes) return;
      expect_not_slower(whole, ranks, {half.front(), half.front()}, ranks, most().most_for_halves);
    });
  }
}

TEST_P(Consistency, Scans) {
  for_all(2, GetParam().longest() / 2, [&](Rank ranks, std::int64_t bytes) {
    const auto expect = [&](const Calls& left, const Calls& right, double own_us = 0) {
      expect_not_slower(left, ranks, right, ranks, most().most_of_scans, own_us);
    };
    expect({{kScan, bytes}}, {{kExscan, bytes}}, costs_.reduce_us(bytes));
    expect({{kReduce, bytes}}, {{kScan, bytes}});
    expect({{kAllreduce, bytes}}, {{kScan, bytes}, {kBcast, bytes}});
    for (const Collective collective : {kScan, kExscan}) {
      expect({{collective, bytes}}, {{collective, 2 * bytes}});
      expect({{collective, 2 * bytes}}, {{collective, bytes}, {collective, bytes}});
    }
  });
}

TEST_P(Consistency, OneRankLessTakesNotMuchLonger) {
  for (const Collective collective : {kBarrier, kBcast, kReduce, kAllreduce, kAllgather, kGather,
                                      kScatter, kReduceScatterBlock, kAlltoall}) {
    for (const Rank ranks : GetParam().ranks_and_one_less()) {
      for (const std::int64_t bytes : {8, 1024, 32768}) {
        if (bytes > GetParam().longest()) continue;
        expect_not_slower({{collective, bytes}}, ranks, {{collective, bytes}}, ranks + 1,
                          most().most_for_a_rank);
      }
    }
  }
}

TEST_P(Consistency, InPlaceTakesNoLonger) {
  for (const Collective collective : {kAllreduce, kAllgather, kReduceScatterBlock, kAlltoall}) {
    for_all(4, 32768, [&](Rank ranks, std::int64_t bytes) {
      const double with_us = costs_.in_place_us(collective, ranks, bytes);
      const double without_us = costs_.us({{collective, bytes}}, ranks);
      EXPECT_LE(with_us, most().most_in_place * without_us)
          << with_us / without_us << ": " << costs_.chosen({{collective, bytes}}, ranks)
          << " takes " << with_us << " us in place, else " << without_us << ", on " << ranks
          << " ranks";
    });
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

// The selection goes by edr. docs/simulator.md says what the figures come from.
std::string name_of(const testing::TestParamInfo<Place>& test) {
  return std::string(test.param.machine) + "_ppn_" + std::to_string(test.param.ppn);
}

const std::vector<Place> kPlaces = {{"edr", 1, {1.2, 1.12, 1.53, 1.14, 1.1, 1.12}},
                                    {"edr", 4, {1.12, 1.19, 1.1, 1.1, 1.23, 1.17}},
                                    {"edr", 16, {1.15, 1.12, 1.1, 1.23, 1.1, 1.1}},
                                    {"edr", 32, {1.22, 1.21, 1.1, 1.39, 1.1, 1.11}, kTo128},
                                    {"edr", 64, {1.17, 1.1, 1.1, 1.1, 1.1, 1.19}},
                                    {"hdr", 1, {1.24, 1.1, 1.65, 1.15, 1.1, 1.19}},
                                    {"hdr", 4, {1.24, 1.24, 1.11, 1.11, 1.2, 1.14}},
                                    {"hdr", 16, {1.16, 1.16, 1.1, 1.34, 1.1, 1.13}},
                                    {"hdr", 32, {1.17, 1.1, 1.1, 1.2, 1.1, 1.1}},
                                    {"hdr", 64, {1.17, 1.1, 1.1, 1.11, 1.1, 1.44}}};
const std::vector<Place> kLargePlaces = {
    {"edr", 16, {1.2, 1.2, 1.1, 1.1, 1.19, 1.1}, kTo512, true},
    {"edr", 32, {1.43, 1.2, 1.1, 1.09, 1.11, 1.1}, kTo512, true},
    {"hdr", 16, {1.2, 1.1, 1.12, 1.1, 1.2, 1.1}, kTo512, true},
    {"hdr", 32, {1.22, 1.1, 1.12, 1.1, 1.1, 1.1}, kTo512, true}};

INSTANTIATE_TEST_SUITE_P(Machines, Consistency, testing::ValuesIn(test::with_turns(3, kPlaces)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Slow, Consistency, testing::ValuesIn(test::with_turns(2, kLargePlaces)),
                         name_of);

}  // namespace
}  // namespace carillon
