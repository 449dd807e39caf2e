// SPDX-License-Identifier: Apache-2.0
//
// Proofs: what has been proved is not proved again, and nothing else is taken as proved.
#include "schedule/proofs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/hand_team.h"
#include "support/shapes.h"
#include "support/trial.h"

namespace carillon {
namespace {

using test::Trial;

// As verify says it; the message too.
void expect_same(Proofs& proofs, const TeamCall& call, const Emit& emit) {
  const Report expected = verify(call, emit);
  const Report report = proofs.verify(call, emit);
  EXPECT_EQ(report.status.to_string(), expected.status.to_string());
  EXPECT_EQ(report.in_rank_order, expected.in_rank_order);
  EXPECT_EQ(report.stats.ops, expected.stats.ops);
}

TeamCall reduce_of(Rank ranks) {
  return {.shared = {Collective::kReduce, ranks, 0, 2, 8}, .limits = {}, .locals = {}};
}

// Of three ranks: rank 0 has its input to the left of the others', or in between.
Emit reduces(bool in_order) {
  const std::string first = in_order ? "output[0+16] = input[0+16] slot(1 #0)[0+16]"
                                     : "output[0+16] = slot(1 #0)[0+16] input[0+16]";
  return test::emit_text("schedule ranks 3 rank 0 scratch 0\nwait 1 #0\nreduce " + first +
                         "\nwait 2 #0\nreduce output[0+16] = output[0+16] slot(2 #0)[0+16]\n"
                         "schedule ranks 3 rank 1 scratch 0\nput 0 #0 input[0+16]\n"
                         "schedule ranks 3 rank 2 scratch 0\nput 0 #0 input[0+16]\n");
}

TEST(Proofs, OneForBothOperators) {
  for (const bool commutative_first : {true, false}) {
    Proofs proofs;
    TeamCall call = reduce_of(3);
    call.shared.commutative = commutative_first;
    expect_same(proofs, call, reduces(true));
    EXPECT_EQ(proofs.known(), 0);
    call.shared.commutative = !commutative_first;
    expect_same(proofs, call, reduces(true));
    EXPECT_EQ(proofs.known(), 1);
    call.locals = {{.in_place = true, .tables = {}}, {}, {}};
    expect_same(proofs, call, reduces(true));
    EXPECT_EQ(proofs.known(), 1);
  }
}

TEST(Proofs, NotWhereTheOrderIsWrong) {
  Proofs proofs;
  TeamCall call = reduce_of(3);
  expect_same(proofs, call, reduces(false));
  EXPECT_TRUE(proofs.verify(call, reduces(false)).ok());
  EXPECT_EQ(proofs.known(), 1);
  call.shared.commutative = false;
  for (int i = 0; i < 2; ++i) {
    const Report report = proofs.verify(call, reduces(false));
    EXPECT_NE(report.status.message().find("rank order"), std::string::npos);
  }
  EXPECT_EQ(proofs.known(), 1);
}

// Anything that the proof looks at: another schedule of a rank, another call, other limits.
TEST(Proofs, NotOfAnythingElse) {
  Proofs proofs;
  const TeamCall call = reduce_of(3);
  expect_same(proofs, call, reduces(true));
  expect_same(proofs, call, reduces(false));
  const auto damaged = [](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
    Result<Schedule> schedule = reduces(true)(rank, stage, learned);
    if (rank == 2) schedule.value().buffers[0].range.offset = 8;
    return schedule;
  };
  expect_same(proofs, call, damaged);
  EXPECT_FALSE(proofs.verify(call, damaged).ok());
  TeamCall other = call;
  other.shared.root = 1;
  expect_same(proofs, other, reduces(true));
  other = call;
  other.shared.count = 3;
  expect_same(proofs, other, reduces(true));
  other = call;
  other.limits.slot_bytes = 8;
  expect_same(proofs, other, reduces(true));
  other = call;
  other.limits.reproducible = true;
  expect_same(proofs, other, reduces(true));
  other = call;
  other.locals = {{.in_place = true, .tables = {}}, {}, {}};
  expect_same(proofs, other, reduces(true));
  EXPECT_EQ(proofs.known(), 0);
}

// Nodes matter to schedules whose messages go to all ranks of one.
TEST(Proofs, OfOtherNodesWhereMessagesAreOfPairs) {
  const auto on = [](const char* id, const test::Shape& shape) {
    const Algorithm& algorithm = *find_algorithm(id);
    Limits limits;
    limits.nodes = shape.nodes;
    return Trial{algorithm, {{algorithm.collective, shape.ranks(), 0, 5, 8}, false}, limits, {}};
  };
  Proofs pairs;
  for (const test::Shape& shape :
       {test::blocked({6}), test::blocked({2, 4}), test::blocked({1, 5})}) {
    Trial trial = on("bcast.binomial", shape);
    const TeamCall call = trial.team_call();
    expect_same(pairs, call, trial.emitter(call));
  }
  EXPECT_EQ(pairs.known(), 2);
  // What is right on one node is not on two.
  Proofs all;
  Trial trial = on("bcast.flat", test::blocked({6}));
  TeamCall call = trial.team_call();
  expect_same(all, call, trial.emitter(call));
  call.limits.nodes = test::blocked({3, 3}).nodes;
  expect_same(all, call, trial.emitter(call));
  EXPECT_FALSE(all.verify(call, trial.emitter(call)).ok());
  EXPECT_EQ(all.known(), 0);
}

// Counts decide where the blocks of an allgatherv are.
TEST(Proofs, NotOfOtherTables) {
  Proofs proofs;
  for (const std::int64_t count : {7, 7, 8}) {
    const Algorithm& algorithm = *find_algorithm("allgatherv.pairwise");
    Trial trial{algorithm, {{algorithm.collective, 5, 0, count, 8}, false}, {}, {}};
    const TeamCall call = trial.team_call();
    expect_same(proofs, call, trial.emitter(call));
  }
  EXPECT_EQ(proofs.known(), 1);
}

// A schedule that is wrong at one root, for one operator, is found there and nowhere else.
TEST(Proofs, OneThatIsWrongAtOneRoot) {
  constexpr Rank kRanks = 8, kWrong = 5;
  Proofs proofs;
  int failed = 0;
  for (Rank root = 0; root < kRanks; ++root) {
    for (const std::int32_t k : {1, 2, 0}) {
      for (const bool commutative : {true, false}) {
        const Shared shared{Collective::kReduce, kRanks, root, 5, 8, commutative};
        const Trial trial{*find_algorithm("reduce.degree_k"), {shared, false}, {}, {.k = k}};
        const TeamCall call{.shared = shared, .limits = {}, .locals = {}};
        const Emit right = trial.emitter(call);
        const bool damaged = root == kWrong && k == 2 && !commutative;
        const Emit emit = [&](Rank rank, std::int32_t stage,
                              std::span<const std::int64_t> learned) {
          Result<Schedule> schedule = right(rank, stage, learned);
          if (!damaged || rank != 3) return schedule;
          for (const Op& op : schedule.value().ops) {
            if (op.kind != OpKind::kReduce) continue;
            Buffer* const operands = schedule.value().buffers.data() + op.first_buffer + 1;
            std::swap(operands[0], operands[1]);
          }
          return schedule;
        };
        expect_same(proofs, call, emit);
        const bool ok = proofs.verify(call, emit).ok();
        EXPECT_EQ(ok, !damaged) << trial.text();
        failed += ok ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(failed, 1);
  EXPECT_GT(proofs.known(), 2 * kRanks);
}

// What a stage learns is not in the schedules of the first one.
TEST(Proofs, NotOfSeveralStages) {
  Proofs proofs;
  const Algorithm& algorithm = *find_algorithm("alltoallv.bruck_two_phase");
  Trial trial{algorithm, {{algorithm.collective, 5, 0, 7, 8}, false}, {}, {}};
  const TeamCall call = trial.team_call();
  for (int i = 0; i < 2; ++i) {
    expect_same(proofs, call, trial.emitter(call));
    const Report report = proofs.verify(call, trial.emitter(call));
    EXPECT_TRUE(report.ok()) << report.status.to_string();
    EXPECT_GT(report.stats.stages, 1);
  }
  EXPECT_EQ(proofs.known(), 0);
}

}  // namespace
}  // namespace carillon
