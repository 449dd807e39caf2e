// SPDX-License-Identifier: Apache-2.0
//
// What a plan cannot name is refused, and never taken for something else.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "algorithms/registry.h"
#include "engine/plan.h"

namespace carillon {
namespace {

Result<Plan> plan_of(Rank ranks) {
  const Algorithm* const algorithm = find_algorithm("alltoall.pairwise");
  const Call call{.shared = {.collective = Collective::kAlltoall, .ranks = ranks, .count = 8},
                  .rank = ranks / 3};
  const auto schedule = emit(*algorithm, call);
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  return schedule.ok() ? lower(schedule.value(), call) : schedule.status();
}

// Two channels to and from each other rank.
TEST(Lowering, EveryChannelHasANumberOfItsOwn) {
  constexpr Rank kRanks = 32700;
  const auto plan = plan_of(kRanks);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan.value().uses.size(), 2 * (kRanks - 1));
  std::set<std::uint16_t> used;
  for (const Instruction& in : plan.value().code) {
    if (in.action == Action::kPut || in.action == Action::kWait) used.insert(in.use);
  }
  EXPECT_EQ(used.size(), plan.value().uses.size());
}

TEST(Lowering, MoreChannelsThanNumbersAreRefused) {
  EXPECT_EQ(plan_of(40000).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace carillon
