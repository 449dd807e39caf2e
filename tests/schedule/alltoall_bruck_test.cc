// SPDX-License-Identifier: Apache-2.0
//
// The four layouts of Bruck's exchange: proved for all radixes and ways to handle memory between
// nodes, where lists matter, and what they put, copy and keep. (On one node conformance_test proves
// them, by real bytes and symbols.) Larger teams have their turns at what there is to prove;
// CARILLON_TEST_WHOLE=1: each goes through all.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "predict/predict.h"
#include "support/trial.h"

namespace carillon {
namespace {

using test::Trial;

constexpr std::array<const char*, 4> kLayouts = {
    "alltoall.bruck_inplace", "alltoall.bruck_resident", "alltoall.bruck_reversed",
    "alltoall.bruck_zerocopy"};
constexpr std::array<std::string_view, 3> kMemories = {"pack", "gather", "selective"};
constexpr Rank kSmall = 16;  // teams that have no turns
constexpr int kShare = 15;   // larger ones take every fifteenth trial

Shared problem(Rank ranks, std::int64_t count) {
  return {.collective = Collective::kAlltoall, .ranks = ranks, .count = count, .element_bytes = 8};
}

// Nodes of `ppn` ranks, and lists of up to `entries`.
Limits between_nodes(Rank ranks, Rank ppn, std::int32_t entries) {
  Limits limits;
  limits.gather_entries = entries;
  limits.nodes = predict::even_nodes(ranks, ppn);
  return limits;
}

Schedule emitted(const char* layout, const Shared& shared, const Limits& limits,
                 const Params& params = {}, Rank rank = 0) {
  Result<Schedule> schedule =
      emit(*find_algorithm(layout),
           {.shared = shared, .rank = rank, .limits = limits, .params = params});
  EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
  return schedule.ok() ? std::move(schedule.value()) : Schedule{};
}

// Of the rank's puts, in their order.
std::vector<std::uint32_t> put_entries(const Schedule& schedule) {
  std::vector<std::uint32_t> entries;
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::kPut) entries.push_back(op.src_count);
  }
  return entries;
}

// What a list of so many runs costs as the defaults of ListCosts have it, of a NIC's only rank: the
// last of its requests has the message's head.
double list_ns(std::uint32_t runs, std::int32_t entries) {
  const int requests = 1 + static_cast<int>(runs) / (entries + 1);
  return 20.0 * (static_cast<int>(runs) - requests) + 107.0 * (requests - 1);
}

class Layouts : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static const Algorithm& algorithm() { return *find_algorithm(GetParam()); }
};

// Lists of two runs are cheap enough here, those of four are not, longer ones are too long.
TEST_P(Layouts, AreProvedForAllRadixesAndWaysToHandleMemory) {
  for (Rank ranks = 2; ranks <= 64; ++ranks) {
    const Rank ppn = 1 + ranks % 3;
    Limits limits = between_nodes(ranks, ppn, 4);
    limits.inline_bytes = 16;
    limits.slot_bytes = ranks % 2 == 0 ? 1024 : 72;
    limits.send_bytes = ranks % 4 == 0 ? 40 : 512;
    limits.list_costs = {.entry_ps = 300, .copy_ps = 500, .run_ps = 10, .byte_fs = 0};
    auto prove = test::one_of(ranks <= kSmall ? 1 : kShare, ranks, test::verify_trial);
    for (const Rank radix : {2, 3, 4, 7, ranks}) {
      if (radix > ranks) continue;
      for (const std::string_view memory : kMemories) {
        for (const bool two_sided : {false, true}) {
          const Params params{
              .k = radix, .two_sided = two_sided, .memory = memory, .copy_blocks = ranks % 5 == 0};
          const bool in_place = (ranks + radix) % 2 == 0;
          prove({algorithm(), {problem(ranks, 1 + ranks % 3), in_place}, limits, params});
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(Layouts, PackGatherOrWhicheverCostsLess) {
  using Entries = std::vector<std::uint32_t>;
  constexpr Rank kRanks = 1024, kRank = 16;
  const auto emit_it = [&](std::string_view memory, Rank ppn, std::int32_t longest) {
    return emitted(GetParam(), problem(kRanks, 1), between_nodes(kRanks, ppn, longest),
                   {.memory = memory}, kRank);
  };
  EXPECT_EQ(put_entries(emit_it("pack", 1, 30)), Entries(10, 1));
  const Entries runs = put_entries(emit_it("gather", 1, 30));
  ASSERT_EQ(runs.size(), 10U);
  EXPECT_EQ(runs.front(), 512U);
  // Entries of 20 ns, and requests, against a copy of as many runs and 4 KiB.
  Entries selected;
  for (const std::uint32_t each : runs) {
    const double copy_ns = 10 + 5.0 * each + 4096 * 0.08;
    selected.push_back(list_ns(each, 30) > copy_ns ? 1 : each);
  }
  EXPECT_EQ(put_entries(emit_it("selective", 1, 30)), selected);
  EXPECT_NE(selected, Entries(10, 1));
  EXPECT_NE(selected, runs);
  // Where lists are not put as they are, there would be two copies.
  EXPECT_EQ(put_entries(emit_it("selective", 1, 1)), runs);
  // To ranks of the same node lists cost no more; the NIC takes those of 32 ranks in turn.
  const Schedule shared = emit_it("selective", 32, 30);
  std::size_t i = 0;
  for (const Op& op : shared.ops) {
    if (op.kind != OpKind::kPut) continue;
    EXPECT_EQ(op.src_count, op.message.peer / 32 == kRank / 32 ? runs[i] : 1U) << i;
    ++i;
  }
}

// Block by block a copy costs what its 512 blocks do, however few runs they are.
TEST_P(Layouts, ListsAreWeighedAgainstTheCopiesThatTheySave) {
  using Entries = std::vector<std::uint32_t>;
  for (const bool blocks : {false, true}) {
    const auto put = [&](std::string_view memory) {
      return put_entries(emitted(GetParam(), problem(1024, 1), between_nodes(1024, 1, 64),
                                 {.memory = memory, .copy_blocks = blocks}));
    };
    const Entries runs = put("gather");
    Entries selected;
    for (const std::uint32_t each : runs) {
      const double copy_ns = 10 + 5.0 * (blocks ? 512 : each) + 4096 * 0.08;
      selected.push_back(list_ns(each, 64) > copy_ns ? 1 : each);
    }
    EXPECT_EQ(put("selective"), selected) << blocks;
    // The longest list that is put.
    const auto longest = *std::max_element(selected.begin(), selected.end());
    EXPECT_EQ(longest > 64, blocks);
  }
}

// Of long runs, blocks of 512 bytes, a list of several requests of 3 or 30 entries costs less than
// a copy; of short ones none of several does.
TEST_P(Layouts, ListsOfSeveralRequestsArePutWhereTheyCostLess) {
  const auto puts = [&](std::string_view memory, std::int64_t count, std::int32_t entries,
                        bool whole = false, Rank ppn = 1) {
    Limits limits = between_nodes(64, ppn, entries);
    if (whole) limits.list_costs.part_ps = 0;
    return put_entries(emitted(GetParam(), problem(64, count), limits, {.memory = memory}));
  };
  const std::vector<std::uint32_t> runs = puts("gather", 64, 30);
  for (const std::int32_t entries : {3, 30}) {
    std::vector<std::uint32_t> selected, of_one_request;
    for (const std::uint32_t each : runs) {
      const double copy_ns = 10 + 5.0 * each + 32 * 512 * 0.08;
      selected.push_back(list_ns(each, entries) > copy_ns ? 1 : each);
      const bool too_long = each > static_cast<std::uint32_t>(entries);
      of_one_request.push_back(too_long ? 1 : selected.back());
    }
    EXPECT_EQ(puts("selective", 64, entries), selected);
    EXPECT_NE(selected, of_one_request) << "some are longer than a request";
    EXPECT_EQ(puts("selective", 64, entries, true), of_one_request);
  }
  // Ranks that share a NIC wait for each other's; the first of these goes to their own node.
  const std::vector<std::uint32_t> of_two = puts("selective", 64, 3, false, 2);
  ASSERT_EQ(of_two.size(), runs.size());
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const double copy_ns = 10 + 5.0 * runs[i] + 32 * 512 * 0.08;
    EXPECT_EQ(of_two[i], 2 * list_ns(runs[i], 3) > copy_ns ? 1 : runs[i]) << "step " << i;
  }
  // Devices that take fewer entries at once than are asked for: as if no more were.
  Limits forced = between_nodes(64, 1, 30);
  forced.request_entries = 3;
  const Schedule schedule = emitted(GetParam(), problem(64, 16), forced, {.memory = "selective"});
  EXPECT_EQ(put_entries(schedule), puts("selective", 16, 3));
  EXPECT_NE(put_entries(schedule), puts("selective", 16, 30));
  const std::vector<std::uint32_t> of_short = puts("selective", 1, 3);
  EXPECT_LE(*std::max_element(of_short.begin(), of_short.end()), 3U);
}

TEST_P(Layouts, ListsOfSeveralRequestsAreProved) {
  for (Rank ranks = 2; ranks <= 64; ++ranks) {
    for (const bool in_place : {false, true}) {
      const Params params{.k = std::min<Rank>(2 + ranks % 3, ranks),
                          .two_sided = ranks % 4 == 0,
                          .memory = "selective"};
      test::verify_trial(
          {algorithm(), {problem(ranks, 64), in_place}, between_nodes(ranks, 1, 3), params});
      if (HasFailure()) return;
    }
  }
}

TEST_P(Layouts, BlocksAreCopiedEachWhereAsked) {
  const Limits limits = between_nodes(13, 1, 30);
  const auto longest_copy = [&](bool blocks) {
    std::uint32_t most = 0;
    const Params params{.memory = "pack", .copy_blocks = blocks};
    for (const Op& op : emitted(GetParam(), problem(13, 3), limits, params).ops) {
      if (op.kind == OpKind::kCopy && op.src_count > 1) most = std::max(most, op.dst_count);
    }
    return most;
  };
  // The two that rotate blocks to lie together.
  const std::string layout = GetParam();
  const bool rotates = layout.ends_with("inplace") || layout.ends_with("reversed");
  EXPECT_EQ(longest_copy(true) > longest_copy(false), rotates);
  // The last step: 5 blocks that lie together, but for zerocopy's, copied one by one.
  const auto last_pack = [&](bool blocks) {
    std::uint32_t sources = 0;
    const Params params{.memory = "pack", .copy_blocks = blocks};
    const Schedule schedule = emitted(GetParam(), problem(13, 3), limits, params);
    for (std::size_t i = 1; i < schedule.ops.size(); ++i) {
      if (schedule.ops[i].kind == OpKind::kPut) sources = schedule.ops[i - 1].src_count;
    }
    return sources;
  };
  EXPECT_EQ(last_pack(true), 5U);
  EXPECT_LT(last_pack(false), 5U);
}

TEST_P(Layouts, AThousandRanksAreProved) {
  std::vector<Params> all;
  for (const std::string_view memory : kMemories) all.push_back({.memory = memory});
  all.push_back({.k = 4, .two_sided = true, .memory = "selective"});
  all.push_back({.memory = "selective", .copy_blocks = true});
  const auto layout = std::ranges::find(kLayouts, std::string_view(GetParam())) - kLayouts.begin();
  auto prove = test::one_of(2, static_cast<int>(layout), test::verify_trial);
  for (const Params& params : all) {
    prove({algorithm(), {problem(1024, 1), false}, between_nodes(1024, 32, 30), params});
  }
}

TEST_P(Layouts, AThousandRanksAreProvedInPlace) {
  const auto layout = std::ranges::find(kLayouts, std::string_view(GetParam())) - kLayouts.begin();
  auto prove = test::one_of(3, static_cast<int>(layout), test::verify_trial);
  for (const std::string_view memory : {"selective", "pack", "gather"}) {
    prove({algorithm(), {problem(1024, 1), true}, between_nodes(1024, 32, 30), {.memory = memory}});
  }
}

INSTANTIATE_TEST_SUITE_P(Bruck, Layouts, testing::ValuesIn(kLayouts), [](const auto& test) {
  return std::string(test.param).substr(std::string("alltoall.").size());
});

// Runs of what each step puts, P = 1,024: halves of the steps before, or a run more for each level
// that blocks have landed on.
TEST(BruckRuns, AreThoseOfTheLayout) {
  const Limits limits = between_nodes(1024, 1, 30);
  const auto runs = [&](const char* layout) {
    return put_entries(emitted(layout, problem(1024, 1), limits, {.memory = "gather"}));
  };
  EXPECT_EQ(runs("alltoall.bruck_inplace"),
            (std::vector<std::uint32_t>{512, 256, 128, 64, 32, 16, 8, 4, 2, 1}));
  EXPECT_EQ(runs("alltoall.bruck_resident"),
            (std::vector<std::uint32_t>{512, 512, 384, 256, 160, 96, 56, 32, 18, 10}));
  EXPECT_EQ(runs("alltoall.bruck_reversed"), runs("alltoall.bruck_inplace"));
  EXPECT_EQ(runs("alltoall.bruck_zerocopy"),
            (std::vector<std::uint32_t>{512, 512, 256, 128, 64, 32, 16, 8, 4, 2}));
}

// Of bruck_resident: messages stay in their slots where those suffice.
TEST(BruckResident, KeepsMessagesWhereItCan) {
  const auto copies = [](Rank ranks, std::int64_t count, const Params& params = {}) {
    const Schedule schedule = emitted("alltoall.bruck_resident", problem(ranks, count),
                                      between_nodes(ranks, 1, 1), params);
    return std::count_if(schedule.ops.begin(), schedule.ops.end(),
                         [](const Op& op) { return op.kind == OpKind::kCopy; });
  };
  EXPECT_EQ(copies(13, 1), 2);      // six blocks of 8 bytes are short: the own block, the sorting
  EXPECT_EQ(copies(13, 2), 2 + 4);  // not short any more, and four of them
  EXPECT_EQ(copies(4, 100), 2);     // two messages are guaranteed
  EXPECT_EQ(copies(5, 100), 2 + 3);
  EXPECT_EQ(copies(13, 2, {.two_sided = true}), 2);  // received where they stay
}

}  // namespace
}  // namespace carillon
