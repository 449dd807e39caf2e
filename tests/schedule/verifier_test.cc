// SPDX-License-Identifier: Apache-2.0
//
// Verifier: whatever it has verified before, right or wrong, it says what verify says.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schedule/verify.h"
#include "support/shapes.h"
#include "support/trial.h"

namespace carillon {
namespace {

void expect_same(const Report& report, const Report& expected, const std::string& what) {
  EXPECT_EQ(report.status.to_string(), expected.status.to_string()) << what;
  EXPECT_EQ(report.in_rank_order, expected.in_rank_order) << what;
  EXPECT_EQ(report.stats.ops, expected.stats.ops) << what;
  EXPECT_EQ(report.stats.messages, expected.stats.messages) << what;
  EXPECT_EQ(report.stats.message_bytes, expected.stats.message_bytes) << what;
  EXPECT_EQ(report.stats.reduced_bytes, expected.stats.reduced_bytes) << what;
  EXPECT_EQ(report.stats.stages, expected.stats.stages) << what;
  EXPECT_EQ(report.stats.slots_contended, expected.stats.slots_contended) << what;
}

// Ends in the middle: the last rank does not do its last op, whatever others wait for.
Emit without_last_op(const Emit& emit) {
  return [&emit](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
    Result<Schedule> schedule = emit(rank, stage, learned);
    if (!schedule.ok() || rank + 1 < schedule.value().ranks) return schedule;
    Schedule& damaged = schedule.value();
    if (damaged.ops.empty() || damaged.strands.back().op_count == 0) return schedule;
    damaged.ops.pop_back();
    --damaged.strands.back().op_count;
    return schedule;
  };
}

TEST(Verifier, SaysWhatVerifySays) {
  Verifier verifier;
  int failed = 0, contended = 0, staged = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const test::Shape& shape :
         {test::blocked({7}), test::blocked({2}), test::blocked({3, 1, 2})}) {
      for (const bool commutative : {true, false}) {
        Limits limits{.slot_bytes = 64, .inline_bytes = 16, .large_slots = 1};
        limits.nodes = shape.nodes;
        const Shared shared{algorithm.collective, shape.ranks(), 0, 43,
                            test::kElement,       commutative};
        test::Trial trial{algorithm, {shared, false}, limits, {}};
        const TeamCall call = trial.team_call();
        const Emit right = trial.emitter(call);
        for (const Emit& emit : {right, without_last_op(right)}) {
          const Report expected = verify(call, emit);
          expect_same(verifier.verify(call, emit), expected, trial.text());
          failed += expected.ok() ? 0 : 1;
          contended += expected.stats.slots_contended ? 1 : 0;
          staged += expected.stats.stages > 1 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(contended, 0);
  EXPECT_GT(staged, 0);
}

// Schedules that are there are as good as those that are emitted.
TEST(Verifier, TakesSchedules) {
  Verifier verifier;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.traits.stages) continue;
    Limits limits{.slot_bytes = 64, .inline_bytes = 16};
    limits.nodes = test::blocked({3, 1, 2}).nodes;
    test::Trial trial{
        algorithm, {{algorithm.collective, 6, 0, 43, test::kElement}, false}, limits, {}};
    const TeamCall call = trial.team_call();
    const Emit right = trial.emitter(call);
    for (const Emit& emit : {right, without_last_op(right)}) {
      std::vector<Schedule> schedules;
      for (Rank rank = 0; rank < 6; ++rank) {
        Result<Schedule> schedule = emit(rank, 0, {});
        if (schedule.ok()) schedules.push_back(std::move(schedule.value()));
      }
      if (schedules.size() < 6) continue;
      expect_same(verifier.verify(call, schedules), verify(call, emit), trial.text());
    }
  }
}

}  // namespace
}  // namespace carillon
