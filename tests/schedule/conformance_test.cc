// SPDX-License-Identifier: Apache-2.0
//
// Every algorithm of the registry, verified (symbolically, at the guaranteed minimum of slots) and
// interpreted on real bytes against the oracle. A new algorithm is covered by its registry row.
//
// The suites: Fast (teams of 1 to 16, every root) and Slow (17 to 64, 127 to 129; label slow).
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "schedule/interpret.h"
#include "schedule/verify.h"
#include "support/oracle.h"

namespace carillon {
namespace {

constexpr std::int32_t kElement = 8;
const Limits kSmallSlots{.slot_bytes = 64, .inline_bytes = 16};
const Limits kMediumSlots{.slot_bytes = 4096, .inline_bytes = 56};
const Limits kTinySlots{.slot_bytes = kElement, .inline_bytes = 0};
const Limits kRealSlots{};

// A problem, how it is to be done, and the memory that tables point into.
struct Trial {
  const Algorithm& algorithm;
  test::Case problem;
  Limits limits;
  Params params;
  std::vector<test::OwnedTables> tables = {};

  TeamCall team_call() {
    TeamCall call{.shared = problem.shared, .limits = limits, .locals = {}};
    for (Rank rank = 0; rank < problem.shared.ranks; ++rank) tables.emplace_back(problem, rank);
    for (Rank rank = 0; rank < problem.shared.ranks; ++rank) {
      call.locals.push_back({.in_place = problem.in_place_at(rank),
                             .tables = tables[static_cast<std::size_t>(rank)].view()});
    }
    return call;
  }
  [[nodiscard]] Emit emitter(const TeamCall& team) const {
    return [this, &team](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
      return emit(algorithm, Call{.shared = problem.shared,
                                  .local = team.local(rank),
                                  .rank = rank,
                                  .limits = limits,
                                  .params = params,
                                  .stage = stage,
                                  .learned = learned});
    };
  }
  [[nodiscard]] std::string text() const {
    const Shared& s = problem.shared;
    return std::string(algorithm.id) + " k=" + std::to_string(params.k) +
           " segment=" + std::to_string(params.segment_bytes) +
           " ranks=" + std::to_string(s.ranks) + " root=" + std::to_string(s.root) +
           " count=" + std::to_string(s.count) + (problem.in_place ? " in place" : "") +
           (s.commutative ? "" : " non-commutative") + " slot=" + std::to_string(limits.slot_bytes);
  }
};

void verify_trial(Trial trial) {
  const TeamCall call = trial.team_call();
  const Report report = verify(call, trial.emitter(call));
  EXPECT_TRUE(report.ok()) << trial.text() << "\n" << report.status.to_string();
}

void interpret_trial(Trial trial, std::uint64_t seed) {
  const TeamCall call = trial.team_call();
  std::vector<Bytes> inputs;
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    inputs.push_back(test::input_of(trial.problem, rank));
  }
  const auto apply = call.shared.commutative ? test::apply_sum : test::apply_affine;
  const Operator reduce = [&](std::byte* dst, const std::byte* left, const std::byte* right,
                              std::int64_t bytes) {
    Bytes result(right, right + bytes);
    apply(left, result.data(), result.size() / kElement);
    std::memcpy(dst, result.data(), result.size());
  };
  InterpretOptions options;
  options.run.seed = seed;
  options.fill = test::kUntouched;
  const auto run = interpret(call, trial.emitter(call), inputs, reduce, options);
  ASSERT_TRUE(run.ok()) << trial.text() << "\n" << run.status().to_string();
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    EXPECT_EQ(run.value().outputs[static_cast<std::size_t>(rank)],
              test::expected_output(trial.problem, rank))
        << trial.text() << ", rank " << rank;
  }
}

// Around the number of ranks (blocks get empty), a prime, around one and several segments.
std::vector<std::int64_t> counts_for(Rank ranks) {
  const std::int64_t segment = kSmallSlots.slot_bytes / kElement;
  const std::set<std::int64_t> counts{
      0, 1, 2, ranks - 1, ranks, ranks + 1, 31, segment - 1, segment, segment + 1, 5 * segment + 3};
  return {counts.begin(), counts.end()};
}

std::vector<Rank> roots_for(const Algorithm& algorithm, Rank ranks, bool all) {
  if (!has_root(algorithm.collective)) return {0};
  std::set<Rank> roots{0, 1 % ranks, ranks / 2, ranks - 1};
  for (Rank root = 0; all && root < ranks; ++root) roots.insert(root);
  return {roots.begin(), roots.end()};
}

std::vector<bool> operators_for(const Algorithm& algorithm) {  // commutative?
  if (!has_reduction(algorithm.collective)) return {true};
  return algorithm.needs_commutative ? std::vector<bool>{true} : std::vector<bool>{true, false};
}

std::vector<bool> in_place_for(const Algorithm& algorithm) {
  Shared shared{.collective = algorithm.collective};
  return in_place_allowed(shared, 0) ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

std::vector<Params> params_for(const Algorithm& algorithm) {
  std::vector<Params> params{{}};
  if (algorithm.k.max > 0) params.push_back({.k = algorithm.k.min});
  if (algorithm.k.max > 0) params.push_back({.k = 6});
  if (algorithm.has_segment) params.push_back({.segment_bytes = 3 * kElement});
  return params;
}

// Calls body(Trial) for the product of all that varies at this number of ranks.
template <typename Body>
void for_each_trial(const Algorithm& algorithm, Rank ranks, const Limits& limits, bool all_roots,
                    const std::vector<std::int64_t>& counts, Body body) {
  for (const Rank root : roots_for(algorithm, ranks, all_roots)) {
    for (const bool commutative : operators_for(algorithm)) {
      for (const bool in_place : in_place_for(algorithm)) {
        for (const std::int64_t count : counts) {
          for (const Params& params : params_for(algorithm)) {
            const Shared shared{algorithm.collective, ranks, root, count, kElement, commutative};
            body(Trial{algorithm, {shared, in_place}, limits, params});
            if (testing::Test::HasFailure()) return;  // one example is enough
          }
          if (algorithm.collective == Collective::kBarrier) break;
        }
      }
    }
  }
}

class Conformance : public testing::TestWithParam<const Algorithm*> {};
class Fast : public Conformance {};
class Slow : public Conformance {};

TEST_P(Fast, IsProvedCorrect) {
  for (Rank ranks = 1; ranks <= 16; ++ranks) {
    for_each_trial(*GetParam(), ranks, kSmallSlots, true, counts_for(ranks), verify_trial);
    for_each_trial(*GetParam(), ranks, kTinySlots, false, {1, 2, ranks + 1}, verify_trial);
    for_each_trial(*GetParam(), ranks, kRealSlots, false, {7, 1000}, verify_trial);
  }
}

TEST_P(Fast, AgreesWithTheOracle) {
  std::uint64_t seed = 0;
  for (const Rank ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
    for_each_trial(*GetParam(), ranks, kSmallSlots, false, {0, 1, ranks + 1, 43},
                   [&](const Trial& trial) { interpret_trial(trial, seed++); });
  }
}

TEST_P(Slow, IsProvedCorrect) {
  for (Rank ranks = 17; ranks <= 64; ++ranks) {
    const std::vector<std::int64_t> counts{0, 1, ranks - 1, ranks + 1, 43};
    for_each_trial(*GetParam(), ranks, kSmallSlots, false, counts, verify_trial);
  }
  for (const Rank ranks : {127, 128, 129}) {
    for_each_trial(*GetParam(), ranks, kMediumSlots, false, {43}, verify_trial);
  }
}

// Elements longer than a slot can be cut where nothing is reduced.
TEST_P(Fast, CutsLongElements) {
  if (has_reduction(GetParam()->collective)) GTEST_SKIP() << "not with a reduction";
  const Limits limits{.slot_bytes = 5, .inline_bytes = 0};
  for_each_trial(*GetParam(), 5, limits, false, {3}, verify_trial);
}

std::vector<const Algorithm*> all() {
  std::vector<const Algorithm*> list;
  for (const Algorithm& algorithm : algorithms()) list.push_back(&algorithm);
  return list;
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  std::string name(info.param->id);
  name[name.find('.')] = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registry, Fast, testing::ValuesIn(all()), test_name);
INSTANTIATE_TEST_SUITE_P(Registry, Slow, testing::ValuesIn(all()), test_name);

}  // namespace
}  // namespace carillon
