// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.merged: proved and interpreted over tables that differ from rank to rank and over nodes
// of many shapes, and how many messages go from node to node. (conformance_test has the even ones,
// on small slots.)
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "support/shapes.h"
#include "support/uneven_exchange.h"

namespace carillon {
namespace {

using test::kPatterns;
using test::Lengths;
using test::Pattern;

class Exchange : public test::UnevenExchange {
 public:
  Exchange(const test::Shape& shape, const Lengths& lengths, Limits limits = {}, std::int32_t k = 0)
      : UnevenExchange("alltoallv.merged", shape.ranks(), lengths, on(shape, std::move(limits)),
                       k) {}

 private:
  static Limits on(const test::Shape& shape, Limits limits) {
    limits.nodes = shape.nodes;
    return limits;
  }
};

bool has_many(const Nodes& nodes) { return nodes.count() > 1 && nodes.largest() > 1; }

std::vector<test::Shape> all_shapes() {
  std::vector<test::Shape> list = test::shapes();
  for (const std::vector<Rank>& sizes : {std::vector<Rank>{8, 8},
                                         {16, 16},
                                         {13, 2, 7},
                                         {4, 4, 4, 4},
                                         {1, 31},
                                         {3, 3, 3, 3, 3, 3, 3}}) {
    list.push_back(test::blocked(sizes));
  }
  // A rank sends to more nodes than may have messages of its under way.
  list.push_back(test::blocked(std::vector<Rank>(12, 4)));
  list.push_back(test::blocked({2, 5, 1, 3, 2, 2, 1, 4, 1, 2, 3, 2, 1, 2}));
  list.push_back(test::round_robin(24, 5));
  return list;
}

// k: none is short, those up to a few bytes are, all but the longest, all.
TEST(AlltoallvMerged, IsProvedForAllTablesAndShapes) {
  int number = 0;
  for (const test::Shape& shape : all_shapes()) {
    for (const std::int32_t k : {1, 4, 0, 8192}) {
      for (const Pattern& pattern : kPatterns) {
        Limits limits;
        if (++number % 3 == 0) limits.inline_bytes = 0;
        const Report report = Exchange(shape, pattern.of(shape.ranks()), limits, k).proved();
        ASSERT_TRUE(report.ok()) << pattern.name << ", nodes " << shape.name << ", k " << k << ": "
                                 << report.status.to_string();
        EXPECT_EQ(report.stats.stages, has_many(*shape.nodes) ? 2 : 1);
      }
    }
  }
}

TEST(AlltoallvMerged, MovesTheBytes) {
  std::uint64_t seed = 0;
  for (const test::Shape& shape : all_shapes()) {
    for (const std::int32_t k : {4, 0}) {
      for (const Pattern& pattern : kPatterns) {
        const Exchange exchange(shape, pattern.of(shape.ranks()), {}, k);
        const auto run = exchange.interpreted(seed++);
        ASSERT_TRUE(run.ok()) << pattern.name << ", nodes " << shape.name << ", k " << k << ": "
                              << run.status().to_string();
        for (std::size_t rank = 0; rank < exchange.expected().size(); ++rank) {
          EXPECT_EQ(run.value().outputs[rank], exchange.expected()[rank])
              << pattern.name << ", nodes " << shape.name << ", k " << k << ", rank " << rank;
        }
      }
    }
  }
}

// How many messages go from node to node, in each stage, and the longest of a rank's sums of them.
struct Traffic {
  std::array<int, 2> messages{};
  int most_of_a_rank = 0;
};
Traffic between_nodes(const Exchange& exchange, const Nodes& nodes) {
  Traffic traffic;
  std::vector<int> of_rank(static_cast<std::size_t>(nodes.ranks()));
  for (const auto& [place, schedule] : exchange.schedules()) {
    const auto [rank, stage] = place;
    for (const Op& op : schedule.ops) {
      const bool goes = op.kind == OpKind::kPut || op.kind == OpKind::kSend;
      if (!goes || nodes.node_of(op.message.peer) == nodes.node_of(rank)) continue;
      ++traffic.messages.at(static_cast<std::size_t>(stage));
      ++of_rank[static_cast<std::size_t>(rank)];
    }
  }
  traffic.most_of_a_rank = *std::max_element(of_rank.begin(), of_rank.end());
  return traffic;
}

TEST(AlltoallvMerged, OneMessageFromNodeToNode) {
  for (const std::vector<Rank>& sizes :
       {std::vector<Rank>{2, 2}, {4, 4}, {3, 1, 2}, {4, 4, 4, 4, 4}, {16, 16}}) {
    const test::Shape shape = test::blocked(sizes);
    const int nodes = shape.nodes->count();
    const Lengths lengths = [](Rank from, Rank to) { return 1 + (from * 7 + to * 5) % 90; };
    const Traffic traffic = between_nodes(Exchange(shape, lengths), *shape.nodes);
    EXPECT_EQ(traffic.messages[0], nodes * (nodes - 1)) << shape.name;
    EXPECT_EQ(traffic.messages[1], nodes * (nodes - 1)) << shape.name;
    // The ranks of a node take turns.
    const int each = (nodes - 1 + shape.nodes->smallest() - 1) / shape.nodes->smallest();
    EXPECT_EQ(traffic.most_of_a_rank, 2 * each) << shape.name;
  }
}

// Blocks of k bytes are merged, those of one byte more go straight, from rank to rank.
TEST(AlltoallvMerged, LongBlocksGoStraight) {
  const test::Shape shape = test::blocked({3, 4});
  const auto messages = [&](std::int64_t bytes, std::int32_t k) {
    const Lengths lengths = [=](Rank from, Rank to) {
      return from == 1 && to >= 5 ? bytes : std::int64_t{3};
    };
    return between_nodes(Exchange(shape, lengths, {}, k), *shape.nodes).messages[1];
  };
  EXPECT_EQ(messages(1024, 0), 2);
  EXPECT_EQ(messages(1025, 0), 2 + 2);
  EXPECT_EQ(messages(100, 100), 2);
  EXPECT_EQ(messages(101, 100), 2 + 2);
  // Where all are long, or none has any bytes, nothing is merged.
  EXPECT_EQ(messages(2, 1), 2 * 3 * 4);
  const auto none = between_nodes(Exchange(shape, kPatterns[1].of(7)), *shape.nodes);
  EXPECT_EQ(none.messages[1], 0);
}

TEST(AlltoallvMerged, TablesThatDoNotFitAreAnError) {
  Exchange exchange(test::blocked({2, 1}), [](Rank, Rank) { return 8; });
  exchange.lie(2, 5);
  // Rank 0 carries for the other node: 2 numbers of what goes there, 2 of what comes.
  const std::array<std::int64_t, 4> learned{8, 8, 8, 8};
  const auto schedule = exchange.emitted(0, 1, learned);
  EXPECT_EQ(schedule.status().code(), Code::kMismatch);
  EXPECT_NE(schedule.status().message().find("rank 2 sends 8 bytes to rank 0, which receives 5"),
            std::string_view::npos)
      << schedule.status().message();
  // What other ranks have said is not trusted.
  const std::array<std::int64_t, 4> negative{8, 8, -8, 8};
  EXPECT_EQ(exchange.emitted(0, 1, negative).status().code(), Code::kMismatch);
}

}  // namespace
}  // namespace carillon
