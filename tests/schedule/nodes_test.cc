// SPDX-License-Identifier: Apache-2.0
//
// Teams of several nodes: every algorithm of the registry on every shape of support/shapes.h,
// proved and interpreted, the hierarchical ones also with other algorithms at their levels. Shapes
// have their turns at what there is to prove; CARILLON_TEST_WHOLE=1: each goes through all.
#include "schedule/nodes.h"

#include <gtest/gtest.h>

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
using test::Shape;
using test::shapes;
using test::Trial;
using test::verify_trial;

Limits limits_for(const Shape& shape, std::int64_t slot_bytes, std::int32_t inline_bytes) {
  return {.slot_bytes = slot_bytes, .inline_bytes = inline_bytes, .nodes = shape.nodes};
}

// Calls body(Trial) where the algorithm says that it can do it. It may refuse only an operator that
// does not commute, on nodes whose ranks do not follow one another.
template <typename Body>
void where_possible(const Trial& trial, Body body) {
  const Algorithm& algorithm = trial.algorithm;
  const Shared& shared = trial.problem.shared;
  const Status status = check(algorithm, shared, trial.params, trial.limits);
  if (status.ok()) return body(trial);
  const bool expected = !shared.commutative && !trial.limits.nodes->contiguous();
  EXPECT_TRUE(expected) << trial.text() << "\n" << status.to_string();
  EXPECT_EQ(status.code(), Code::kUnsupported) << trial.text();
}

constexpr int kShare = 6;  // a shape takes every sixth trial

class OnNodes : public testing::TestWithParam<const Algorithm*> {};

TEST_P(OnNodes, IsProvedCorrect) {
  const auto prove = [](const Trial& trial) { where_possible(trial, verify_trial); };
  int turn = 0;
  for (const Shape& shape : shapes()) {
    const Rank ranks = shape.ranks();
    const std::vector<std::int64_t> counts{43, 0, 1, ranks + 1, 8};
    ++turn;
    for_each_trial(*GetParam(), ranks, limits_for(shape, 64, 16), true, counts,
                   one_of(kShare, turn, prove));
    for_each_trial(*GetParam(), ranks, limits_for(shape, kElement, 0), false, {ranks + 1, 1},
                   one_of(kShare, turn, prove));
    for_each_trial(*GetParam(), ranks, limits_for(shape, 65536, 56), false, {1000, 7},
                   one_of(kShare, turn, prove));
  }
}

TEST_P(OnNodes, AgreesWithTheOracle) {
  std::uint64_t seed = 0;
  int turn = 0;
  const auto interpret = [&](const Trial& trial) {
    where_possible(trial, [&](const Trial& t) { interpret_trial(t, seed++); });
  };
  for (const Shape& shape : shapes()) {
    for_each_trial(*GetParam(), shape.ranks(), limits_for(shape, 64, 16), false, {43, 0, 1, 9},
                   one_of(kShare, turn++, interpret));
  }
}

// Bytes of which no word is whole, and those that a word does not divide.
TEST_P(OnNodes, MovesAnyNumberOfBytes) {
  if (has_reduction(GetParam()->collective)) GTEST_SKIP() << "moves elements";
  std::uint64_t seed = 0;
  int turn = 0;
  const auto both = [&](const Trial& trial) {
    verify_trial(trial);
    interpret_trial(trial, seed++);
  };
  for (const Shape& shape : shapes()) {
    auto prove = one_of(kShare, turn++, both);
    for (const Rank root : test::roots_for(*GetParam(), shape.ranks(), true)) {
      for (const std::int64_t bytes : {43, 1, 2, 3, 5, 7, 9}) {
        const Shared shared{GetParam()->collective, shape.ranks(), root, bytes, 1};
        const Trial trial{*GetParam(), {shared, false}, limits_for(shape, 64, 16), {}};
        if (!check(*GetParam(), shared, trial.params, trial.limits).ok()) continue;
        prove(trial);
        if (HasFailure()) return;  // one example is enough
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, OnNodes, testing::ValuesIn(test::all_algorithms()),
                         test::name_of_algorithm);

// What one rank passes on to another one is put where what it gave it before was put, and sent
// where that was sent.
TEST(Nodes, LanesPassOnAsTheyGive) {
  const Algorithm& lanes = *find_algorithm("alltoall.lanes");
  for (const std::vector<Rank>& nodes :
       {std::vector<Rank>{3, 1, 2}, {5, 1, 1}, {1, 4, 4}, {8, 4}}) {
    const Shape shape = test::blocked(nodes);
    for (const bool in_place : {false, true}) {
      for (const std::int64_t count : {1, 3, 300, 500, 1000, 2000}) {
        const Shared shared{lanes.collective, shape.ranks(), 0, count, kElement};
        verify_trial({lanes, {shared, in_place}, limits_for(shape, 65536, 56), {}});
        if (count < 8) verify_trial({lanes, {shared, in_place}, limits_for(shape, 64, 16), {}});
      }
    }
  }
}

// Other levels than the default ones.
class OnLevels : public testing::TestWithParam<const char*> {};

TEST_P(OnLevels, IsProvedCorrect) {
  const auto choice = parse_choice(GetParam());
  ASSERT_TRUE(choice.ok()) << choice.status().to_string();
  const Algorithm& algorithm = *choice.value().algorithm;
  std::uint64_t seed = 0;
  int turn = 0;
  const auto both = [&](const Trial& trial) {
    verify_trial(trial);
    interpret_trial(trial, seed++);
  };
  for (const Shape& shape : shapes()) {
    auto prove = one_of(kShare, turn++, both);
    for (const bool commutative : {true, false}) {
      for (const bool in_place : test::in_place_for(algorithm)) {
        for (const Rank root : test::roots_for(algorithm, shape.ranks(), true)) {
          for (const std::int64_t count : {43, 0, 1, 3}) {
            const Shared shared{algorithm.collective, shape.ranks(), root, count, kElement,
                                commutative};
            const Limits limits = limits_for(shape, 64, 16);
            const Trial trial{algorithm, {shared, in_place}, limits, choice.value().params};
            if (!check(algorithm, shared, trial.params, limits).ok()) continue;
            prove(trial);
            if (HasFailure()) return;  // one example is enough
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Choices, OnLevels,
    testing::Values(
        "barrier.hierarchical:node=dissemination,leaders=flat", "bcast.hierarchical:leaders=flat",
        "bcast.hierarchical:leaders=chain,segment=16",
        "bcast.hierarchical:node=chain,leaders=scatter_allgather",
        "bcast.hierarchical:leaders=binomial,node=scatter_allgather",
        "bcast.hierarchical:node=knomial,k=3", "reduce.hierarchical:leaders=flat,node=degree_k,k=2",
        "reduce.hierarchical:leaders=reduce_scatter_gather,node=flat_blocks",
        "allreduce.hierarchical:node=flat,leaders=flat",
        "allreduce.hierarchical:node=flat_blocks,leaders=reduce_scatter_allgather",
        "allreduce.hierarchical:node=degree_k,leaders=degree_k,k=3",
        "allreduce.hierarchical:node=chain,leaders=ring,segment=24",
        "allgather.hierarchical:leaders=ring,node=binomial", "allgather.hierarchical:leaders=flat",
        "allgather.hierarchical:leaders=recursive_doubling,segment=24",
        "alltoall.hierarchical:node=binomial,segment=24", "barrier.hierarchical:node=degree_k,k=4",
        "reduce.hierarchical:node=circulant", "allreduce.hierarchical:node=circulant",
        "reduce_scatter_block.lanes:leaders=flat", "reduce_scatter_block.lanes:node=circulant",
        "scatter.node_tree:k=2,segment=24", "gather.node_tree:k=2,segment=24",
        "allreduce.hierarchical:leaders=recursive_multiplying,k=3"));

TEST(Nodes, AreNumberedByTheirFirstRanks) {
  const std::vector<std::int32_t> names{7, 3, 7, 9, 3};
  const Nodes nodes(names);
  EXPECT_EQ(nodes.ranks(), 5);
  EXPECT_EQ(nodes.count(), 3);
  const std::vector<std::int32_t> numbers{0, 1, 0, 2, 1};
  for (Rank rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(nodes.node_of(rank), numbers[static_cast<std::size_t>(rank)]);
  }
  EXPECT_EQ(std::vector<Rank>(nodes.members(0).begin(), nodes.members(0).end()),
            (std::vector<Rank>{0, 2}));
  EXPECT_EQ(std::vector<Rank>(nodes.members(2).begin(), nodes.members(2).end()),
            (std::vector<Rank>{3}));
  EXPECT_EQ(nodes, Nodes(numbers));
}

TEST(Nodes, AreContiguousIfTheirRanksFollowOneAnother) {
  EXPECT_TRUE(test::blocked({3, 1, 2}).nodes->contiguous());
  EXPECT_TRUE(test::round_robin(4, 4).nodes->contiguous());
  EXPECT_FALSE(test::round_robin(5, 2).nodes->contiguous());
}

}  // namespace
}  // namespace carillon
