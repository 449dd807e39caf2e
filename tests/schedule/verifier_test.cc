// SPDX-License-Identifier: Apache-2.0
//
// Verifier: whatever it has verified before, right or wrong, it says what verify says.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/verify.h"
#include "support/hand_team.h"
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
  int failed = 0, staged = 0;
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
          staged += expected.stats.stages > 1 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(staged, 0);
}

// What was right before is nothing to go by: who had heard of whom, and where results belonged.
TEST(Verifier, ForgetsWhatWasRight) {
  Verifier verifier;
  const TeamCall barrier{
      .shared = {.collective = Collective::kBarrier, .ranks = 2}, .limits = {}, .locals = {}};
  const auto verify_text = [&](const TeamCall& call, std::string_view text) {
    return verifier.verify(call, test::emit_text(text));
  };
  EXPECT_TRUE(verify_text(barrier,
                          "schedule ranks 2 rank 0 scratch 0\nsignal 1 #0\nwait 1 #0\n"
                          "schedule ranks 2 rank 1 scratch 0\nsignal 0 #0\nwait 0 #0\n")
                  .ok());
  const Report early = verify_text(barrier,
                                   "schedule ranks 2 rank 0 scratch 0\nsignal 1 #0\n"
                                   "schedule ranks 2 rank 1 scratch 0\nwait 0 #0\n");
  EXPECT_NE(early.status.message().find("before rank 1 has entered it"), std::string::npos);

  const std::vector<std::int64_t> none{0, 0}, to_1{0, 8}, from_0{8, 0}, behind{8, 8};
  constexpr std::string_view kText =
      "schedule ranks 2 rank 0 scratch 0\nsend 1 #0 input(1)\n"
      "schedule ranks 2 rank 1 scratch 0\nrecv 0 #0 output[0+8]\n";
  const auto receiving_at = [&](const std::vector<std::int64_t>& offsets) {
    return TeamCall{
        .shared = {.collective = Collective::kAlltoallv, .ranks = 2},
        .limits = {},
        .locals = {{false, {to_1, none, none, none}}, {false, {none, none, from_0, offsets}}}};
  };
  const Report in_place = verify_text(receiving_at(none), kText);
  EXPECT_TRUE(in_place.ok()) << in_place.status.message();
  const Report elsewhere = verify_text(receiving_at(behind), kText);
  EXPECT_NE(elsewhere.status.message().find("not all belongs"), std::string::npos);
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

// Of too few schedules there is nothing to run.
TEST(Verifier, RefusesSchedulesThatAreMissing) {
  const TeamCall barrier{
      .shared = {.collective = Collective::kBarrier, .ranks = 2}, .limits = {}, .locals = {}};
  const std::vector<Schedule> one(1);
  EXPECT_NE(Verifier().verify(barrier, one).status.message().find("not one schedule for each"),
            std::string::npos);
}

// In place two puts are in flight at once; where only one is guaranteed the input is copied.
TEST(AlltoallPairwise, InPlaceWithOneLongPut) {
  for (const Rank ranks : {2, 3, 5, 8}) {
    const Limits limits{.slot_bytes = 64, .inline_bytes = 16, .large_slots = 1};
    test::verify_trial({*find_algorithm("alltoall.pairwise"),
                        {{Collective::kAlltoall, ranks, 0, 43, test::kElement}, true},
                        limits,
                        {}});
  }
}

}  // namespace
}  // namespace carillon
