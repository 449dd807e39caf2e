// SPDX-License-Identifier: Apache-2.0
//
// Which plans may go the short way of a run: those of one strand, without loops and sends, whose
// messages are no more on a channel than it has lines.
#include <gtest/gtest.h>

#include <string>

#include "algorithms/registry.h"
#include "engine/plan.h"
#include "support/hand_team.h"

namespace carillon::test {
namespace {

bool brief(const std::string& ops, std::int64_t bytes = 128) {
  const Shared shared{Collective::kBcast, 2, 0, bytes, 1, true};
  const std::string text = "schedule ranks 2 rank 0 scratch 64\n" + ops;
  const auto schedule = emit_text(text)(0, 0, {});
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  const auto plan = lower(schedule.value(), {.shared = shared});
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.value().brief;
}

std::string puts(int count) {
  std::string ops;
  for (int i = 0; i < count; ++i) ops += "put 1 #" + std::to_string(i) + " input[0+8]\n";
  return ops;
}

TEST(PlanBrief, MessagesInLinesAndOthers) {
  EXPECT_TRUE(brief("put 1 #0 input[0+56]\n"));
  EXPECT_TRUE(brief("put 1 #0 input[0+57]\n"));
  EXPECT_TRUE(brief("put 1 #0 input[0+8] input[16+8]\n"));
  EXPECT_TRUE(brief("put 1 #0 input[0+8] input[16+56]\n"));
  const std::string copy = "copy scratch[0+8] = slot(1 #0)[0+8]\n";
  EXPECT_TRUE(brief("put 1 #0 input[0+8]\nwait 1 #0\n" + copy));
  const std::string end = "copy scratch[0+8] = slot(1 #0)[49+8]\n";
  EXPECT_TRUE(brief("put 1 #0 input[0+8]\nwait 1 #0\n" + end));
}

TEST(PlanBrief, NoMoreThanLines) {
  EXPECT_TRUE(brief(puts(static_cast<int>(shm::kWindow))));
  EXPECT_FALSE(brief(puts(static_cast<int>(shm::kWindow) + 1)));
}

TEST(PlanBrief, OneStrandWithoutLoopsAndSends) {
  EXPECT_FALSE(brief("put 1 #0 input[0+8]\nstrand\nwait 1 #0\n"));
  EXPECT_FALSE(brief("repeat 2 {\nput 1 #0 by 1 input[0+8 by 8]\n}\n"));
  EXPECT_FALSE(brief("send 1 #0 input[0+8]\n"));
  EXPECT_FALSE(brief("put 1 #0 input[0+8]\nmulticast team #0 input[0+8]\n"));
}

bool is_brief(const char* name, Rank ranks, Rank rank, std::int64_t count) {
  const Algorithm* const algorithm = find_algorithm(name);
  EXPECT_NE(algorithm, nullptr) << name;
  const Shared shared{algorithm->collective, ranks, 0, count, 8, true};
  const Call call{.shared = shared, .rank = rank};
  const auto schedule = emit(*algorithm, call);
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  const auto plan = lower(schedule.value(), call);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.value().brief;
}

TEST(PlanBrief, CollectivesOfOneNode) {
  for (const char* const name :
       {"barrier.flat", "allreduce.flat", "allgather.flat", "alltoall.flat", "bcast.flat",
        "reduce.flat", "allreduce.recursive_doubling"}) {
    for (const std::int64_t count : {1, 8192}) {
      for (const Rank rank : {0, 1}) {
        EXPECT_TRUE(is_brief(name, 2, rank, count)) << name << " of " << count << ", rank " << rank;
      }
    }
  }
}

// Their messages are several pieces of memory.
TEST(PlanBrief, AlltoallOfMoreRanks) {
  for (Rank rank = 0; rank < 5; ++rank) EXPECT_TRUE(is_brief("alltoall.flat", 5, rank, 1)) << rank;
}

}  // namespace
}  // namespace carillon::test
