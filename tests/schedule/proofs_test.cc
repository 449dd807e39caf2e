// SPDX-License-Identifier: Apache-2.0
//
// Proofs: what has been proved is not proved again, and nothing else is taken as proved.
#include "schedule/proofs.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace carillon
