// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.bruck_two_phase: proved and interpreted over tables that differ from rank to rank, and
// what it sends. (conformance_test has the even ones, on small slots.)
#include <gtest/gtest.h>

#include <array>
#include <string>
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
  Exchange(Rank ranks, const Lengths& lengths, const Limits& limits, Rank radix = 0)
      : UnevenExchange("alltoallv.bruck_two_phase", ranks, lengths, limits, radix) {}
};

TEST(AlltoallvBruck, IsProvedForAllTablesAndRadixes) {
  for (Rank ranks = 1; ranks <= 64; ++ranks) {
    Limits limits;
    if (ranks % 3 == 0) limits.inline_bytes = 0;
    if (ranks % 2 == 0) limits.nodes = test::blocked({ranks / 2, ranks - ranks / 2}).nodes;
    for (const Rank radix : {0, 2, 3, ranks}) {  // 0: the default
      if (radix == 1 || radix > ranks || (ranks > 17 && (ranks + radix) % 3 != 0)) continue;
      for (const Pattern& pattern : kPatterns) {
        const Report report = Exchange(ranks, pattern.of(ranks), limits, radix).proved();
        ASSERT_TRUE(report.ok()) << pattern.name << ", " << ranks << " ranks, radix " << radix
                                 << ": " << report.status.to_string();
        EXPECT_EQ(report.stats.stages, ranks > 1 ? 2 : 1);
      }
    }
  }
}

TEST(AlltoallvBruck, AThousandRanksAreProved) {
  Limits limits;
  limits.gather_entries = 30;
  limits.nodes = test::blocked(std::vector<Rank>(32, 32)).nodes;
  const Report report = Exchange(1024, kPatterns[0].of(1024), limits).proved();
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  EXPECT_EQ(report.stats.stages, 2);
}

TEST(AlltoallvBruck, MovesTheBytes) {
  std::uint64_t seed = 0;
  for (const Rank ranks : {1, 2, 3, 5, 7, 8, 13, 64}) {
    for (const Rank radix : {0, 3, 5}) {
      if (radix > ranks) continue;
      for (const Pattern& pattern : kPatterns) {
        const Exchange exchange(ranks, pattern.of(ranks), {}, radix);
        const auto run = exchange.interpreted(seed++);
        ASSERT_TRUE(run.ok()) << pattern.name << ", " << ranks << " ranks, radix " << radix << ": "
                              << run.status().to_string();
        for (std::size_t rank = 0; rank < exchange.expected().size(); ++rank) {
          EXPECT_EQ(run.value().outputs[rank], exchange.expected()[rank])
              << pattern.name << ", " << ranks << " ranks, radix " << radix << ", rank " << rank;
        }
      }
    }
  }
}

// Of 13 ranks 4 rounds; a block takes one hop for each digit of the way that is not zero, and the
// lengths and the longest ones as many bytes whatever they are.
TEST(AlltoallvBruck, PadsNothing) {
  constexpr Rank kRanks = 13;
  const auto hops = [](Rank distance) {
    return __builtin_popcount(static_cast<unsigned>(distance));
  };
  const Lengths lengths = kPatterns[0].of(kRanks);
  std::int64_t block_bytes = 0, length_bytes = kRanks * (kRanks - 1) * 8;  // of the longest ones
  for (Rank from = 0; from < kRanks; ++from) {
    for (Rank to = 0; to < kRanks; ++to) {
      const int way = hops((to - from + kRanks) % kRanks);
      block_bytes += way * lengths(from, to);
      length_bytes += way * 8;
    }
  }
  const Report report = Exchange(kRanks, lengths, {}, 2).proved();
  EXPECT_EQ(report.stats.message_bytes, block_bytes + length_bytes);
  EXPECT_EQ(report.stats.messages, 2 * 4 * kRanks);
  // Where nobody sends anything, the second phase has no messages.
  EXPECT_EQ(Exchange(kRanks, kPatterns[1].of(kRanks), {}, 2).proved().stats.messages, 4 * kRanks);
}

// One long block anywhere, and all ranks go over to the pairwise exchange.
TEST(AlltoallvBruck, LongBlocksGoStraight) {
  constexpr Rank kRanks = 13;
  const auto messages = [](std::int64_t longest) {
    const Lengths lengths = [=](Rank from, Rank to) {
      return from == 4 && to == 2 ? longest : std::int64_t{8};
    };
    return Exchange(kRanks, lengths, {}, 2).proved().stats.messages;
  };
  EXPECT_EQ(messages(256), 2 * 4 * kRanks);
  EXPECT_EQ(messages(257), 4 * kRanks + kRanks * (kRanks - 1));
  // What would not fit in a slot goes straight, too.
  const Lengths lengths = [](Rank, Rank) { return std::int64_t{100}; };
  EXPECT_EQ(Exchange(kRanks, lengths, {.slot_bytes = 512}, 2).proved().stats.messages,
            4 * kRanks + kRanks * (kRanks - 1));
}

TEST(AlltoallvBruck, TablesThatDoNotFitAreAnError) {
  Exchange exchange(2, [](Rank, Rank) { return 8; }, {});
  exchange.lie(1, 5);
  // Of 2 ranks one learns the longest blocks of both and the length of the other's block.
  const std::array<std::int64_t, 3> learned{8, 8, 8};
  const auto schedule = exchange.emitted(0, 1, learned);
  EXPECT_EQ(schedule.status().code(), Code::kMismatch);
  EXPECT_NE(schedule.status().message().find("rank 1 sends 8 bytes to rank 0, which receives 5"),
            std::string_view::npos)
      << schedule.status().message();
}

}  // namespace
}  // namespace carillon
