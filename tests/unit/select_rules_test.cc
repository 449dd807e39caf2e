// SPDX-License-Identifier: Apache-2.0
//
// Selection: every problem gets an algorithm that can do it, and overrides are obeyed where they
// can be.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "select/select.h"
#include "support/shapes.h"

namespace carillon {
namespace {

Shared problem(Collective collective, Rank ranks, std::int64_t count, bool commutative = true) {
  return {.collective = collective,
          .ranks = ranks,
          .count = count,
          .element_bytes = 8,
          .commutative = commutative};
}

TEST(Select, EveryProblemGetsAnAlgorithmThatCanDoIt) {
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const Rank ranks : {1, 2, 3, 16, 17, 64, 1000}) {
      for (const std::int64_t count : {0L, 1L, 256L, 257L, 100000L, 1L << 40}) {
        for (const bool commutative : {true, false}) {
          const Shared shared = problem(collective, ranks, count, commutative);
          const AlgorithmChoice choice = select(shared, {}, default_rules());
          ASSERT_NE(choice.algorithm, nullptr);
          const Status status = check(*choice.algorithm, shared, choice.params);
          EXPECT_TRUE(status.ok()) << status.to_string();
        }
      }
    }
  }
}

TEST(Select, EveryProblemOnSeveralNodesGetsAnAlgorithmThatCanDoIt) {
  for (const test::Shape& shape : test::shapes()) {
    const Limits limits{.nodes = shape.nodes};
    for (int i = 0; i < kCollectives; ++i) {
      for (const std::int64_t count : {0L, 1L, 128L, 257L, 5000L, 100000L, 1L << 40}) {
        for (const bool commutative : {true, false}) {
          const auto collective = static_cast<Collective>(i);
          const Shared shared = problem(collective, shape.ranks(), count, commutative);
          const AlgorithmChoice choice = select(shared, limits, default_rules());
          ASSERT_NE(choice.algorithm, nullptr);
          const Status status = check(*choice.algorithm, shared, choice.params, limits);
          EXPECT_TRUE(status.ok()) << shape.name << ": " << status.to_string();
          if (emits_by_tables(collective) || count > 257) continue;
          // What its levels do, too.
          const Result<Schedule> schedule = emit(
              *choice.algorithm, {.shared = shared, .limits = limits, .params = choice.params});
          EXPECT_TRUE(schedule.ok()) << shape.name << ": " << schedule.status().to_string();
        }
      }
    }
  }
}

TEST(Select, ReproducibleSumsAreMadeFromLeftToRight) {
  const auto rules = parse_rules("allreduce=ring;reduce=degree_k;scan=recursive_doubling");
  ASSERT_TRUE(rules.ok()) << rules.status().to_string();
  std::vector<test::Shape> shapes = test::shapes();
  for (const int ranks : {1, 2, 16, 17, 64, 1000}) shapes.push_back(test::blocked({ranks}));
  for (const test::Shape& shape : shapes) {
    for (const bool crowded : {false, true}) {
      const Limits limits{.crowded = crowded, .reproducible = true, .nodes = shape.nodes};
      for (int i = 0; i < kCollectives; ++i) {
        for (const std::int64_t count : {0L, 1L, 128L, 257L, 5000L, 100000L, 1L << 40}) {
          const auto collective = static_cast<Collective>(i);
          const Shared shared = problem(collective, shape.ranks(), count);
          const AlgorithmChoice choice = select(shared, limits, rules.value());
          ASSERT_NE(choice.algorithm, nullptr);
          const Status status = check(*choice.algorithm, shared, choice.params, limits);
          EXPECT_TRUE(status.ok()) << shape.name << ": " << status.to_string();
          if (has_reduction(collective)) {
            EXPECT_TRUE(choice.algorithm->traits.left_to_right) << choice.algorithm->id;
          }
        }
      }
    }
  }
}

TEST(Select, SeveralNodesGetLevelsOrPairs) {
  const auto id = [](Collective collective, std::int64_t count, const test::Shape& shape,
                     bool commutative = true, bool crowded = false) {
    const Shared shared = problem(collective, shape.ranks(), count, commutative);
    const Limits limits{.crowded = crowded, .nodes = shape.nodes};
    return select(shared, limits, default_rules()).algorithm->id;
  };
  const test::Shape blocked = test::blocked({3, 1, 2});
  const test::Shape dealt = test::round_robin(6, 2);
  for (const Collective collective : {Collective::kBarrier, Collective::kBcast, Collective::kReduce,
                                      Collective::kAllreduce, Collective::kAllgather}) {
    EXPECT_TRUE(id(collective, 1, blocked).ends_with(".hierarchical"));
    EXPECT_TRUE(id(collective, 1, dealt).ends_with(".hierarchical"));
    EXPECT_FALSE(id(collective, 1, test::blocked({6})).ends_with(".hierarchical"));
  }
  EXPECT_EQ(id(Collective::kAlltoall, 1, blocked), "alltoall.lanes");
  EXPECT_EQ(id(Collective::kAlltoall, 1, blocked, true, true), "alltoall.hierarchical");
  EXPECT_EQ(id(Collective::kAlltoall, 1000, blocked, true, true), "alltoall.pairwise");
  const test::Shape singles = test::blocked({1, 1, 1, 1});
  EXPECT_EQ(id(Collective::kAlltoall, 128, singles, true, true), "alltoall.bruck_resident");
  EXPECT_EQ(id(Collective::kAlltoall, 129, singles, true, true), "alltoall.pairwise");
  EXPECT_EQ(id(Collective::kAlltoall, 1, test::blocked({1, 1, 1}), true, true),
            "alltoall.pairwise");
  EXPECT_EQ(id(Collective::kAllreduce, 1, blocked, false), "allreduce.hierarchical");
  EXPECT_EQ(id(Collective::kAllreduce, 1, dealt, false), "allreduce.recursive_doubling");
  EXPECT_EQ(id(Collective::kReduce, 1, dealt, false), "reduce.degree_k");
  for (const test::Shape& shape : {blocked, dealt}) {
    EXPECT_EQ(id(Collective::kGather, 1, shape), "gather.node_tree");
    EXPECT_EQ(id(Collective::kScatter, 1, shape), "scatter.node_tree");
  }
  const test::Shape many = test::blocked({1, 1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(id(Collective::kAllreduce, 256, many), "allreduce.recursive_multiplying");
  EXPECT_EQ(id(Collective::kBarrier, 1, many), "barrier.multiway_dissemination");
}

TEST(Select, LongAllreducesGoAroundARingThroughSocketsAndWhereCoresAreShared) {
  const auto choice = [](std::int64_t kib, const std::vector<Rank>& nodes, bool crowded,
                         bool sockets, bool commutative = true) {
    const test::Shape shape = test::blocked(nodes);
    const Limits limits{.crowded = crowded, .sockets = sockets, .nodes = shape.nodes};
    const Shared shared =
        problem(Collective::kAllreduce, shape.ranks(), kib * 1024 / 8, commutative);
    return to_text(select(shared, limits, default_rules()));
  };
  const std::vector<Rank> four(4, 1), eight(8, 1);
  EXPECT_EQ(choice(512, four, false, true), "allreduce.ring");
  EXPECT_NE(choice(511, four, false, true), "allreduce.ring");
  EXPECT_NE(choice(512, four, false, false), "allreduce.ring");
  EXPECT_NE(choice(512, four, false, true, false), "allreduce.ring");
  EXPECT_NE(choice(4096, std::vector<Rank>(17, 1), false, true), "allreduce.ring");

  const std::string around = "allreduce.hierarchical:node=flat_blocks,leaders=ring";
  for (const bool sockets : {false, true}) {
    EXPECT_EQ(choice(65, four, true, sockets), around);
    EXPECT_EQ(choice(65, {3, 1, 2}, true, sockets), around);
    EXPECT_NE(choice(64, four, true, sockets), around);
    EXPECT_NE(choice(4096, four, true, sockets, false), around);
    EXPECT_EQ(choice(512, eight, true, sockets), around);
    EXPECT_NE(choice(511, eight, true, sockets), around);
    EXPECT_NE(choice(4096, std::vector<Rank>(17, 1), true, sockets), around);
  }
}

TEST(Select, ShortReduceScattersGoThroughAllWhereNodesAreUnlike) {
  const auto id = [](std::int64_t count, const test::Shape& shape) {
    const Limits limits{.nodes = shape.nodes};
    return select(problem(Collective::kReduceScatterBlock, shape.ranks(), count), limits,
                  default_rules())
        .algorithm->id;
  };
  for (const test::Shape& shape : {test::blocked({16, 16, 1}), test::blocked({16, 16, 3}),
                                   test::blocked({4, 4, 1}), test::blocked({1, 15})}) {
    EXPECT_EQ(id(1, shape), "reduce_scatter_block.through_all") << shape.name;
    EXPECT_NE(id(100, shape), "reduce_scatter_block.through_all") << shape.name;
  }
  for (const test::Shape& shape : {test::blocked({16, 16, 4}), test::blocked({4, 4, 2})}) {
    EXPECT_EQ(id(1, shape), "reduce_scatter_block.lanes") << shape.name;
  }
}

TEST(Select, PrefixesOfLongVectorsGoByChainsOfShortSegments) {
  for (const Collective collective : {Collective::kScan, Collective::kExscan}) {
    for (const bool crowded : {false, true}) {
      const Limits limits{.crowded = crowded};
      const auto segment = [&](Rank ranks, std::int64_t bytes) {
        return select(problem(collective, ranks, bytes / 8), limits, default_rules())
            .params.segment_bytes;
      };
      EXPECT_EQ(segment(64, 4096), 0);
      EXPECT_EQ(segment(64, 8192), crowded ? 16384 : 512);
      EXPECT_EQ(segment(64, 65536), crowded ? 16384 : 1024);
      EXPECT_EQ(segment(64, 1 << 20), crowded ? 16384 : 2048);
      EXPECT_EQ(segment(8, 1 << 20), crowded ? 16384 : 4096);
    }
  }
}

TEST(Select, ScanAndExscanGoTheSameWay) {
  std::vector<test::Shape> shapes = test::shapes();
  for (const int ranks : {1, 2, 3, 12, 24, 25, 64}) shapes.push_back(test::blocked({ranks}));
  const auto way = [](const Shared& shared, const Limits& limits) {
    const std::string text = to_text(select(shared, limits, default_rules()));
    return text.substr(text.find('.'));
  };
  std::set<std::string> ways;
  for (const test::Shape& shape : shapes) {
    for (const bool crowded : {false, true}) {
      const Limits limits{.crowded = crowded, .nodes = shape.nodes};
      for (std::int64_t bytes = 8; bytes <= 1 << 20; bytes *= 2) {
        const std::string scan = way(problem(Collective::kScan, shape.ranks(), bytes / 8), limits);
        EXPECT_EQ(scan, way(problem(Collective::kExscan, shape.ranks(), bytes / 8), limits));
        ways.insert(scan);
      }
    }
  }
  EXPECT_GE(ways.size(), 5U);
}

TEST(Select, BroadcastsAreMulticastWhereThatPays) {
  const auto id = [](std::int64_t bytes, const test::Shape& shape, const Limits& like) {
    Limits limits = like;
    limits.nodes = shape.nodes;
    return select(problem(Collective::kBcast, shape.ranks(), bytes / 8), limits, default_rules())
        .algorithm->id;
  };
  const test::Shape three = test::blocked({3, 1, 2});
  for (const bool crowded : {false, true}) {
    const Limits pays{.crowded = crowded, .multicast_pays = true};
    EXPECT_EQ(id(8192, three, pays), "bcast.hierarchical");
    EXPECT_EQ(id(8200, three, pays), "bcast.multicast_leader");
    EXPECT_EQ(id(65536, three, pays), "bcast.multicast_leader");
    EXPECT_EQ(id(65544, three, pays), "bcast.hierarchical");
    EXPECT_EQ(id(8200, test::blocked({1, 1, 1}), pays), "bcast.multicast_leader");
    EXPECT_EQ(id(65536, test::blocked({3, 2}), pays), "bcast.hierarchical");
    EXPECT_EQ(id(65536, test::blocked({6}), pays), "bcast.flat");
    Limits lacks = pays;
    lacks.multicast_bytes = 0;
    EXPECT_EQ(id(65536, three, lacks), "bcast.hierarchical");
    EXPECT_EQ(id(65536, three, {.crowded = crowded}), "bcast.hierarchical");
  }
}

TEST(Select, OverridesComeFirst) {
  const auto rules = parse_rules("allreduce=degree_k:k=5;bcast=binomial;;");
  ASSERT_TRUE(rules.ok()) << rules.status().to_string();
  const auto choice = select(problem(Collective::kAllreduce, 4, 1), {}, rules.value());
  EXPECT_EQ(choice.algorithm->id, "allreduce.degree_k");
  EXPECT_EQ(choice.params.k, 5);
  EXPECT_EQ(select(problem(Collective::kBcast, 4, 1), {}, rules.value()).algorithm->id,
            "bcast.binomial");
  EXPECT_EQ(select(problem(Collective::kAlltoall, 4, 1), {}, rules.value()).algorithm,
            select(problem(Collective::kAlltoall, 4, 1), {}, default_rules()).algorithm);
}

TEST(Select, AnOverrideThatCannotDoTheProblemIsPassedOver) {
  const auto rules = parse_rules("allreduce=recursive_doubling;allreduce=ring");
  ASSERT_TRUE(rules.ok());
  // The last one given wins; where it cannot, the one before; then the rules.
  EXPECT_EQ(select(problem(Collective::kAllreduce, 4, 1), {}, rules.value()).algorithm->id,
            "allreduce.ring");
  EXPECT_EQ(select(problem(Collective::kAllreduce, 4, 1, false), {}, rules.value()).algorithm->id,
            "allreduce.recursive_doubling");
  const auto ring = parse_rules("allreduce=ring");
  ASSERT_TRUE(ring.ok());
  EXPECT_EQ(select(problem(Collective::kAllreduce, 4, 1, false), {}, ring.value()).algorithm->id,
            "allreduce.flat");
}

TEST(Select, ErrorsNameTheOverride) {
  const auto rules = parse_rules("bcast=binomial;allreduce=sing");
  ASSERT_FALSE(rules.ok());
  EXPECT_NE(rules.status().message().find("allreduce.sing"), std::string_view::npos);
  EXPECT_NE(rules.status().message().find("allreduce.ring"), std::string_view::npos);
  EXPECT_TRUE(parse_rules("").ok());
}

}  // namespace
}  // namespace carillon
