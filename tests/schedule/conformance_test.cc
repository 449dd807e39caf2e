// SPDX-License-Identifier: Apache-2.0
//
// Every algorithm of the registry, verified (symbolically, at the guaranteed minimum of slots) and
// interpreted on real bytes against the oracle. A new algorithm is covered by its registry row.
//
// The suites: Fast (teams of 1 to 16, every root) and Slow (17 to 64, of 23 every root, 127 and
// 129; label slow). Teams of more than 8 ranks have their turns (support/turn.h) at what smaller
// ones all go through.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/registry.h"
#include "support/shapes.h"
#include "support/trial.h"

namespace carillon {
namespace {

using test::for_each_trial;
using test::interpret_trial;
using test::kElement;
using test::one_of;
using test::Trial;
using test::verify_trial;

const Limits kSmallSlots{.slot_bytes = 64, .inline_bytes = 16, .multicast_bytes = 44};
const Limits kMediumSlots{.slot_bytes = 4096, .inline_bytes = 56};
const Limits kTinySlots{.slot_bytes = kElement, .inline_bytes = 0, .multicast_bytes = 5};
const Limits kRealSlots{};
constexpr Rank kManyRoots = 23;  // beyond Fast's: every root of so many ranks
constexpr Rank kSmall = 8;       // teams that have no turns
constexpr int kFastShare = 6;    // a larger team takes every sixth trial,
constexpr int kSlowShare = 15;   // one of more than 16 ranks every fifteenth

// Around the number of ranks (blocks get empty), a prime, around one and several segments.
std::vector<std::int64_t> counts_for(Rank ranks) {
  const std::int64_t segment = kSmallSlots.slot_bytes / kElement;
  const std::set<std::int64_t> counts{
      0, 1, 2, ranks - 1, ranks, ranks + 1, 31, segment - 1, segment, segment + 1, 5 * segment + 3};
  return {counts.begin(), counts.end()};
}

class Conformance : public testing::TestWithParam<const Algorithm*> {};
class Fast : public Conformance {};
class Slow : public Conformance {};

TEST_P(Fast, IsProvedCorrect) {
  for (Rank ranks = 1; ranks <= 16; ++ranks) {
    const int share = ranks <= kSmall ? 1 : kFastShare;
    for_each_trial(*GetParam(), ranks, kSmallSlots, true, counts_for(ranks),
                   one_of(share, ranks, verify_trial));
    for_each_trial(*GetParam(), ranks, kTinySlots, false, {ranks + 1, 1, 2},
                   one_of(share, ranks, verify_trial));
    for_each_trial(*GetParam(), ranks, kRealSlots, false, {1000, 7},
                   one_of(share, ranks, verify_trial));
  }
}

TEST_P(Fast, AgreesWithTheOracle) {
  std::uint64_t seed = 0;
  for (const Rank ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
    const int share = ranks <= kSmall ? 1 : kFastShare;
    for_each_trial(
        *GetParam(), ranks, kSmallSlots, false, {43, 0, 1, ranks + 1},
        one_of(share, ranks, [&](const Trial& trial) { interpret_trial(trial, seed++); }));
  }
}

TEST_P(Slow, IsProvedCorrect) {
  for (Rank ranks = 17; ranks <= 64; ++ranks) {
    // Two counts for each team, in turn: the small teams go through all of them.
    const std::int64_t few[] = {0, 1, ranks - 1}, many[] = {ranks + 1, 43};
    for_each_trial(*GetParam(), ranks, kSmallSlots, ranks == kManyRoots,
                   {many[ranks % 2], few[ranks % 3]}, one_of(kSlowShare, ranks, verify_trial));
  }
  for (const Rank ranks : {127, 129}) {
    for_each_trial(*GetParam(), ranks, kMediumSlots, false, {43},
                   one_of(kFastShare, ranks, verify_trial));
  }
}

// Messages that fit in a line are still as many as the segments, beyond all that may be under way.
TEST_P(Fast, CutsWhatFitsInALine) {
  if (!GetParam()->has_segment) GTEST_SKIP() << "has no segments";
  constexpr std::int32_t kInSegments = 12;
  const Limits limits{.slot_bytes = 65536, .inline_bytes = kInSegments * kElement};
  for (const Rank ranks : {2, 3, 5, 8}) {
    for (const Rank root : test::roots_for(*GetParam(), ranks, true)) {
      const Shared shared{GetParam()->collective, ranks, root, kInSegments * (ranks - 1), kElement};
      const Params params{.segment_bytes = kElement};
      if (!check(*GetParam(), shared, params, limits).ok()) continue;
      verify_trial({*GetParam(), {shared, false}, limits, params});
    }
  }
}

// Elements longer than a slot can be cut where nothing is reduced.
TEST_P(Fast, CutsLongElements) {
  if (has_reduction(GetParam()->collective)) GTEST_SKIP() << "not with a reduction";
  const Limits limits{.slot_bytes = 5, .inline_bytes = 0};
  for_each_trial(*GetParam(), 5, limits, false, {3}, verify_trial);
}

Limits reproducible(const test::Shape& shape) {
  return {.slot_bytes = 64,
          .inline_bytes = 16,
          .multicast_bytes = 44,
          .reproducible = true,
          .nodes = shape.nodes};
}

// What may make reproducible sums reduces from left to right, on any nodes; the others are refused.
TEST_P(Fast, ReducesFromLeftToRightOrIsRefused) {
  if (!has_reduction(GetParam()->collective)) GTEST_SKIP() << "reduces nothing";
  int trials = 0;
  for (const test::Shape& shape :
       {test::blocked({1}), test::blocked({2}), test::blocked({3}), test::round_robin(3, 2),
        test::blocked({2, 3}), test::blocked({7}), test::round_robin(7, 3),
        test::blocked({3, 1, 4}), test::blocked({13})}) {
    for_each_trial(*GetParam(), shape.ranks(), reproducible(shape), false, {1, 5, 43},
                   [&](const Trial& trial) {
                     ++trials;
                     verify_trial(trial);
                   });
  }
  EXPECT_EQ(trials > 0, GetParam()->traits.left_to_right);
}

// The proof sees another order.
TEST_P(Fast, AnotherOrderIsNoReproducibleSum) {
  if (!has_reduction(GetParam()->collective)) GTEST_SKIP() << "reduces nothing";
  if (GetParam()->traits.left_to_right) GTEST_SKIP() << "has no other order";
  const test::Shape shape = test::blocked({3, 1, 3});
  Limits limits = reproducible(shape);
  limits.reproducible = false;
  const Shared shared{GetParam()->collective, shape.ranks(), 0, 7, kElement};
  Trial trial{*GetParam(), {shared, false}, limits, {}};
  TeamCall call = trial.team_call();
  EXPECT_TRUE(verify(call, trial.emitter(call)).ok());
  call.limits.reproducible = true;
  const Status status = verify(call, trial.emitter(call)).status;
  EXPECT_NE(status.to_string().find("left to right"), std::string::npos) << status.to_string();
}

INSTANTIATE_TEST_SUITE_P(Registry, Fast, testing::ValuesIn(test::all_algorithms()),
                         test::name_of_algorithm);
INSTANTIATE_TEST_SUITE_P(Registry, Slow, testing::ValuesIn(test::all_algorithms()),
                         test::name_of_algorithm);

}  // namespace
}  // namespace carillon
