// SPDX-License-Identifier: Apache-2.0
//
// The op aggregate: what verify says of schedules in which it is wrong.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "schedule/verify.h"
#include "support/hand_team.h"
#include "support/shapes.h"

namespace carillon {
namespace {

// An allreduce of two elements on nodes 0 1 | 2: one through the switch as a whole, two in parts.
constexpr std::string_view kAggregates =
    "schedule ranks 3 rank 0 scratch 0\n"
    "wait 1 #0\n"
    "reduce output[0+16] = input[0+16] slot(1 #0)[0+16]\n"
    "aggregate #0 output[0+8] = output[0+8]\n"
    "aggregate #1 output[8+8] = output[8+8]\n"
    "put 1 #0 output[0+16]\n"
    "schedule ranks 3 rank 1 scratch 0\n"
    "put 0 #0 input[0+16]\n"
    "wait 0 #0\n"
    "copy output[0+16] = slot(0 #0)[0+16]\n"
    "schedule ranks 3 rank 2 scratch 0\n"
    "aggregate #0 output[0+8] = input[0+8]\n"
    "aggregate #1 output[8+8] = input[8+8]\n";

TeamCall aggregates() {
  TeamCall call{
      .shared = {.collective = Collective::kAllreduce, .ranks = 3, .count = 2, .element_bytes = 8},
      .limits = {},
      .locals = {}};
  call.limits.nodes = test::blocked({2, 1}).nodes;
  return call;
}

struct Broken {
  std::string_view from, to, reason;
};

TEST(Aggregate, WhatIsWrongIsRejected) {
  const Report right = verify(aggregates(), test::emit_text(kAggregates));
  EXPECT_TRUE(right.ok()) << right.status.to_string();
  const Broken cases[] = {
      {"aggregate #1 output[8+8] = input[8+8]\n", "", "waits for the aggregates of other leaders"},
      {"aggregate #0 output[0+8] = input[0+8]", "aggregate #1 output[0+8] = input[0+8]",
       "deadlock"},
      {"aggregate #1 output[8+8] = input[8+8]", "aggregate #0 output[8+8] = input[8+8]",
       "a second time"},
      {"aggregate #1 output[8+8] = input[8+8]", "aggregate #1 output[8+8] = input[0+8]",
       "the operands do not belong together"},
      {"aggregate #0 output[0+8] = input[0+8]", "aggregate #0 output[0+16] = input[0+16]",
       "another leader has one of"},
      {"aggregate #0 output[0+8] = input[0+8]",
       "aggregate #0 output[0+8] =", "lacks the contribution of rank 2"},
      {"aggregate #0 output[0+8] = input[0+8]", "aggregate #0 = input[0+8]", "is never written"},
      {"wait 0 #0\n", "aggregate #0 output[0+8] = input[0+8]\nwait 0 #0\n", "that is no leader"},
      {"aggregate #0 output[0+8] = input[0+8]", "aggregate #0 output[0+4] = input[0+4]",
       "a part of an element"},
  };
  for (const Broken& broken : cases) {
    const std::string text = test::replaced(std::string(kAggregates), broken.from, broken.to);
    const Report report = verify(aggregates(), test::emit_text(text));
    ASSERT_FALSE(report.ok()) << text;
    EXPECT_NE(report.status.message().find(broken.reason), std::string::npos)
        << text << "got:    " << report.status.message() << "\nwanted: " << broken.reason;
  }
  TeamCall without = aggregates();
  without.limits.aggregates = false;
  EXPECT_FALSE(verify(without, test::emit_text(kAggregates)).ok());
}

// What a node does not give is skipped.
TEST(Aggregate, NodesWithoutOperandAreSkipped) {
  TeamCall call{
      .shared = {.collective = Collective::kAllreduce, .ranks = 5, .count = 1, .element_bytes = 8},
      .limits = {},
      .locals = {}};
  call.limits.nodes = test::blocked({1, 1, 1, 1, 1}).nodes;
  std::string text;
  for (Rank rank = 0; rank < 5; ++rank) {
    text += "schedule ranks 5 rank " + std::to_string(rank) + " scratch 0\n";
    text += "aggregate #0 output[0+8] =";
    text += rank == 2 ? "\n" : " input[0+8]\n";
  }
  const Report report = verify(call, test::emit_text(text));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status.message().find("lacks the contribution of rank 2"), std::string::npos)
      << report.status.message();
}

}  // namespace
}  // namespace carillon
