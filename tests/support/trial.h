// SPDX-License-Identifier: Apache-2.0
//
// Trials of the conformance tests: an algorithm on one problem, verified (symbolically, at the
// guaranteed minimum of slots) and interpreted on real bytes against the oracle.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "algorithms/emitter.h"
#include "schedule/interpret.h"
#include "schedule/verify.h"
#include "support/operators.h"
#include "support/oracle.h"
#include "support/turn.h"

namespace carillon::test {

inline constexpr std::int32_t kElement = 8;

// A problem, how it is to be done, and the memory that tables point into.
struct Trial {
  const Algorithm& algorithm;
  Case problem;
  Limits limits;
  Params params;
  std::vector<OwnedTables> tables = {};

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
    const auto emitter = std::make_shared<Emitter>();
    return [this, &team, emitter](Rank rank, std::int32_t stage,
                                  std::span<const std::int64_t> learned) {
      return emitter->emit(algorithm, Call{.shared = problem.shared,
                                           .local = team.local(rank),
                                           .rank = rank,
                                           .limits = limits,
                                           .params = params,
                                           .stage = stage,
                                           .learned = learned});
    };
  }
  // " nodes=0,0,1 domains=0,1,2": each rank's.
  [[nodiscard]] std::string nodes_text() const {
    std::string list;
    for (Rank rank = 0; limits.nodes && rank < limits.nodes->ranks(); ++rank) {
      list += (rank == 0 ? " nodes=" : ",") + std::to_string(limits.nodes->node_of(rank));
    }
    for (Rank rank = 0; limits.domains && rank < limits.domains->ranks(); ++rank) {
      list += (rank == 0 ? " domains=" : ",") + std::to_string(limits.domains->node_of(rank));
    }
    return list;
  }
  [[nodiscard]] std::string text() const {
    const Shared& s = problem.shared;
    return to_text({&algorithm, params}) + " ranks=" + std::to_string(s.ranks) +
           " root=" + std::to_string(s.root) + " count=" + std::to_string(s.count) +
           (problem.in_place ? " in place" : "") + (s.commutative ? "" : " non-commutative") +
           nodes_text() + " slot=" + std::to_string(limits.slot_bytes);
  }
};

inline void verify_trial(Trial trial) {
  const TeamCall call = trial.team_call();
  const Report report = verify(call, trial.emitter(call));
  EXPECT_TRUE(report.ok()) << trial.text() << "\n" << report.status.to_string();
}

inline void interpret_trial(Trial trial, std::uint64_t seed) {
  const TeamCall call = trial.team_call();
  std::vector<Bytes> inputs;
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    inputs.push_back(input_of(trial.problem, rank));
  }
  InterpretOptions options;
  options.run.seed = seed;
  options.fill = kUntouched;
  const auto run = interpret(call, trial.emitter(call), inputs, operator_of(call.shared), options);
  ASSERT_TRUE(run.ok()) << trial.text() << "\n" << run.status().to_string();
  for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
    EXPECT_EQ(run.value().outputs[static_cast<std::size_t>(rank)],
              expected_output(trial.problem, rank))
        << trial.text() << ", rank " << rank;
  }
}

inline std::vector<Rank> roots_for(const Algorithm& algorithm, Rank ranks, bool all) {
  if (!has_root(algorithm.collective)) return {0};
  std::set<Rank> roots{0, 1 % ranks, ranks / 2, ranks - 1};
  for (Rank root = 0; all && root < ranks; ++root) roots.insert(root);
  return {roots.begin(), roots.end()};
}

inline std::vector<bool> operators_for(const Algorithm& algorithm) {  // commutative?
  if (!has_reduction(algorithm.collective)) return {true};
  return algorithm.needs_commutative ? std::vector<bool>{true} : std::vector<bool>{true, false};
}

inline std::vector<bool> in_place_for(const Algorithm& algorithm) {
  Shared shared{.collective = algorithm.collective};
  return in_place_allowed(shared, 0) ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

inline std::vector<Params> params_for(const Algorithm& algorithm) {
  std::vector<Params> params{{}};
  if (algorithm.k.max > 0) params.push_back({.k = algorithm.k.min});
  if (algorithm.k.max > 0) params.push_back({.k = 6});
  if (algorithm.has_segment) params.push_back({.segment_bytes = 3 * kElement});
  if (algorithm.traits.lists) {
    params.push_back({.k = 3, .memory = "pack"});
    params.push_back({.k = 5, .memory = "pack", .copy_blocks = true});
  }
  if (algorithm.has_transfer()) {
    params.push_back(
        {.segment_bytes = algorithm.has_segment ? 3 * kElement : 0, .two_sided = true});
  }
  return params;
}

// Passes on the first trial, and every `share`-th, others for each `turn`, which adds to the one of
// turn.h: `share` turns that follow one another go through all.
template <typename Body>
auto one_of(int share, int turn, Body body) {
  return [=, number = 0UL](const Trial& trial) mutable {
    if (number == 0 || has_turn(share, number + static_cast<unsigned long>(turn))) body(trial);
    ++number;
  };
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
            if (!suits({&algorithm, params}, shared, limits)) continue;  // the radix
            body(Trial{algorithm, {shared, in_place}, limits, params});
            if (testing::Test::HasFailure()) return;  // one example is enough
          }
          if (algorithm.collective == Collective::kBarrier) break;
        }
      }
    }
  }
}

}  // namespace carillon::test
