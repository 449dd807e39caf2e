// SPDX-License-Identifier: Apache-2.0
//
// How often the servlet looks at a network before it sleeps.
#include "engine/until_quiet.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace carillon {
namespace {

// A network that brings so many messages with each look, one after another and then none, and how
// often it is looked at. Work ends with the look `last`.
int looks_at(const std::vector<std::uint64_t>& brings, int last = 1000) {
  std::uint64_t completions = 7;
  int looks = 0;
  look_until_quiet([&] { return completions; },
                   [&] {
                     const auto look = static_cast<std::size_t>(looks++);
                     completions += look < brings.size() ? brings[look] : 0;
                   },
                   [&] { return looks < last; });
  return looks;
}

TEST(LookUntilQuiet, LooksOnceWhereNothingComes) { EXPECT_EQ(looks_at({}), 1); }

TEST(LookUntilQuiet, TakesAllThatHasGathered) {
  EXPECT_EQ(looks_at({1}), 2);
  EXPECT_EQ(looks_at({1, 1, 1, 1, 1}), 6);
  EXPECT_EQ(looks_at({3, 1, 0, 5}), 3) << "what comes later wakes it again";
}

TEST(LookUntilQuiet, EndsWithTheWork) {
  EXPECT_EQ(looks_at({1, 1, 1, 1, 1}, 3), 3);
  EXPECT_EQ(looks_at({1, 1}, 0), 1);
}

TEST(LookUntilQuiet, DoesNotKeepThePostedWaiting) {
  EXPECT_EQ(looks_at(std::vector<std::uint64_t>(10 * kMostLooks, 1)), kMostLooks);
}

}  // namespace
}  // namespace carillon
