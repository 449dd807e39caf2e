// SPDX-License-Identifier: Apache-2.0
//
// alltoallv.bruck_two_phase: proved and interpreted over tables that differ from rank to rank, and
// what it sends. (conformance_test has the even ones, on small slots.)
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "schedule/interpret.h"
#include "schedule/verify.h"
#include "support/shapes.h"

namespace carillon {
namespace {

// Bytes of the block from one rank to another.
using Lengths = std::function<std::int64_t(Rank from, Rank to)>;

struct Pattern {
  const char* name;
  std::function<Lengths(Rank ranks)> of;
};

const std::array<Pattern, 6> kPatterns = {{
    {"uneven",
     [](Rank) -> Lengths { return [](Rank from, Rank to) { return (from * 7 + to * 5) % 11; }; }},
    {"nothing", [](Rank) -> Lengths { return [](Rank, Rank) { return 0; }; }},
    {"one rank has nothing",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) {
         return from == ranks / 2 || to == ranks / 2 ? 0 : 3 + (from + 2 * to) % 5;
       };
     }},
    {"one rank sends all",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) { return from == ranks / 3 ? 1 + to % 4 : 0; };
     }},
    {"one rank gets all",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) { return to == ranks / 3 ? 1 + from % 4 : 0; };
     }},
    {"one long block",
     [](Rank ranks) -> Lengths {
       return [=](Rank from, Rank to) {
         return from == 0 && to == ranks - 1 ? 5000 : (from + to) % 3;
       };
     }},
}};

// The whole call, its bytes, and what must come of it.
class Exchange {
 public:
  Exchange(Rank ranks, const Lengths& lengths, const Limits& limits, Rank radix = 0)
      : lengths_(lengths), radix_(radix), tables_(static_cast<std::size_t>(ranks)) {
    call_.shared = {.collective = Collective::kAlltoallv, .ranks = ranks};
    call_.limits = limits;
    for (Rank rank = 0; rank < ranks; ++rank) add(rank);
    for (const Owned& own : tables_) {
      call_.locals.push_back({false, {own[0], own[1], own[2], own[3]}});
    }
  }

  [[nodiscard]] Report proved() const { return verify(call_, emitter()); }
  [[nodiscard]] Result<Interpretation> interpreted(std::uint64_t seed) const {
    return interpret(call_, emitter(), inputs_, {}, {.run = {.seed = seed}, .fill = kFill});
  }
  [[nodiscard]] const std::vector<Bytes>& expected() const { return expected_; }
  /// What rank 0 is told about the length of the block from `from`.
  void lie(Rank from, std::int64_t bytes) { tables_[0][2][static_cast<std::size_t>(from)] = bytes; }
  [[nodiscard]] Result<Schedule> emitted(Rank rank, std::int32_t stage,
                                         std::span<const std::int64_t> learned) const {
    return emit(*find_algorithm("alltoallv.bruck_two_phase"), {.shared = call_.shared,
                                                               .local = call_.local(rank),
                                                               .rank = rank,
                                                               .limits = call_.limits,
                                                               .params = {.k = radix_},
                                                               .stage = stage,
                                                               .learned = learned});
  }

 private:
  using Owned = std::array<std::vector<std::int64_t>, 4>;
  static constexpr std::byte kFill{0xEE};

  static std::byte byte_of(Rank from, Rank to, std::int64_t i) {
    return static_cast<std::byte>((from * 31 + to * 17 + i * 3) % 251);
  }
  void add(Rank rank) {
    Owned& own = tables_[static_cast<std::size_t>(rank)];
    Bytes input, output;
    for (Rank peer = 0; peer < call_.shared.ranks; ++peer) {
      const std::int64_t out = lengths_(rank, peer), in = lengths_(peer, rank);
      input.insert(input.end(), 2, kFill);  // gaps
      output.insert(output.end(), 1, kFill);
      own[0].push_back(out);
      own[1].push_back(static_cast<std::int64_t>(input.size()));
      own[2].push_back(in);
      own[3].push_back(static_cast<std::int64_t>(output.size()));
      for (std::int64_t i = 0; i < out; ++i) input.push_back(byte_of(rank, peer, i));
      for (std::int64_t i = 0; i < in; ++i) output.push_back(byte_of(peer, rank, i));
    }
    const Local local{.in_place = false, .tables = {own[0], own[1], own[2], own[3]}};
    input.resize(static_cast<std::size_t>(input_bytes(call_.shared, local, rank)));
    output.resize(static_cast<std::size_t>(output_bytes(call_.shared, local, rank)));
    inputs_.push_back(input);
    expected_.push_back(output);
  }
  [[nodiscard]] Emit emitter() const {
    return [this](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
      return emitted(rank, stage, learned);
    };
  }

  Lengths lengths_;
  Rank radix_;
  std::vector<Owned> tables_;
  TeamCall call_;
  std::vector<Bytes> inputs_, expected_;
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
