// SPDX-License-Identifier: Apache-2.0
//
// What teams learn of the tables of their alltoallvs: all ranks conclude alike, whatever their own
// tables are, and what they conclude suits all.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "select/select.h"
#include "select/surveys.h"
#include "support/shapes.h"

namespace carillon {
namespace {

constexpr Rank kMany = 128;

Limits singles(Rank ranks) {
  return {.nodes = test::blocked(std::vector<Rank>(static_cast<std::size_t>(ranks), 1)).nodes};
}

// Bytes of the block from one rank to another, in the call of a number from 1 on.
using Lengths = std::function<std::int64_t(Rank from, Rank to, int call)>;

// All ranks of a team, each with its own Surveys, told what the schedules would tell them.
class Team {
 public:
  Team(Rank ranks, const Limits& limits) : ranks_(ranks), limits_(limits) {
    for (Rank rank = 0; rank < ranks; ++rank) surveys_.emplace_back(ranks, limits, TableCosts{});
  }

  /// The next call; its algorithm, or what is wrong.
  std::string call(const Lengths& lengths) {
    ++calls_;
    std::vector<AlgorithmChoice> choices;
    std::vector<std::int64_t> facts, longest;
    for (Rank rank = 0; rank < ranks_; ++rank) {
      Numbers bytes(static_cast<std::size_t>(ranks_));
      for (Rank to = 0; to < ranks_; ++to) {
        bytes[static_cast<std::size_t>(to)] = lengths(rank, to, calls_);
      }
      Surveys& own = surveys_[static_cast<std::size_t>(rank)];
      choices.push_back(own.next({bytes, bytes, bytes, bytes}));
      TableFacts mine = table_facts(bytes);
      mine[static_cast<std::size_t>(TableFact::kNote)] = own.note();
      facts.insert(facts.end(), mine.begin(), mine.end());
      longest.push_back(mine[static_cast<std::size_t>(TableFact::kLongest)]);
    }
    const AlgorithmChoice& choice = choices.front();
    if (std::any_of(choices.begin(), choices.end(), [&](const auto& c) { return c != choice; })) {
      return "not alike";
    }
    const std::string_view id = choice.algorithm->id;
    for (Surveys& own : surveys_) {
      if (id == "alltoallv.survey") own.learn(choice, facts);
      if (id == "alltoallv.bruck_two_phase") own.learn(choice, longest);
    }
    return std::string(id.substr(id.find('.') + 1));
  }
  /// Of the calls after it.
  void count_plans(bool are_new, int calls) {
    const AlgorithmChoice bruck{.algorithm = find_algorithm("alltoallv.bruck_two_phase"),
                                .params = {.k = 4}};
    for (int i = 0; i < calls; ++i) surveys_.front().count_plan(bruck, are_new);
  }
  [[nodiscard]] int calls() const { return calls_; }
  /// What was counted, the same on all ranks.
  [[nodiscard]] std::vector<std::pair<Why, std::uint64_t>> counts() const {
    std::vector<std::pair<Why, std::uint64_t>> all;
    for (std::size_t i = 0; i < kWhys; ++i) {
      const std::uint64_t calls = surveys_.front().calls()[i];
      if (calls > 0) all.emplace_back(static_cast<Why>(i), calls);
      for (const Surveys& own : surveys_) EXPECT_EQ(own.calls()[i], calls);
    }
    return all;
  }

 private:
  using Numbers = std::vector<std::int64_t>;
  Rank ranks_;
  Limits limits_;
  std::vector<Surveys> surveys_;
  int calls_ = 0;
};

// What the calls are done by: p, S (survey), b (bruck_two_phase) and m (merged), one letter each.
std::string letters(Team& team, const Lengths& lengths, int calls) {
  std::string text;
  for (int i = 0; i < calls; ++i) {
    const std::string by = team.call(lengths);
    if (by == "not alike") return by;
    text += by == "survey" ? 'S' : by[0];
  }
  return text;
}

TEST(Surveys, ShortBlocksThatRepeatGoByBruck) {
  Team team(kMany, singles(kMany));
  EXPECT_EQ(letters(
                team, [](Rank from, Rank to, int) { return (from + to) % 17; }, 20),
            "pSbSbbbSbbbbbbbSbbbb");
  std::string rest = letters(
      team, [](Rank from, Rank to, int) { return (from + to) % 17; }, 240);
  for (int call = 21; call <= 260; ++call) {
    const bool survey = call == 32 || call % 64 == 0;
    EXPECT_EQ(rest[static_cast<std::size_t>(call - 21)], survey ? 'S' : 'b') << "call " << call;
  }
}

TEST(Surveys, TablesThatNeverRepeatGoPairwise) {
  Team team(kMany, singles(kMany));
  const Lengths lengths = [](Rank from, Rank to, int call) {
    return (from * 31 + to * 17 + call * 7) % 23;
  };
  EXPECT_EQ(letters(team, lengths, 20), "pSpSpppSpppppppSpppp");
}

// One rank whose tables differ from call to call is enough: all wait for it.
TEST(Surveys, TheSlowestRankCounts) {
  Team changing(kMany, singles(kMany));
  EXPECT_EQ(
      letters(
          changing,
          [](Rank from, Rank, int call) { return from == 77 ? (call * 3) % 41 : std::int64_t{8}; },
          9),
      "pSpSpppSp");
  Team one_long(kMany, singles(kMany));
  EXPECT_EQ(
      letters(
          one_long,
          [](Rank from, Rank to, int) { return from == 77 && to == 3 ? 257 : std::int64_t{8}; }, 9),
      "pSpSpppSp");
}

// In pairwise exchange an empty block is no message; but most of many are still many.
TEST(Surveys, SparseTablesGoPairwise) {
  const auto all_up_to = [](Rank most) {
    return [most](Rank from, Rank to, int) {
      return (to - from + kMany) % kMany <= most ? std::int64_t{8} : std::int64_t{0};
    };
  };
  Team sparse(kMany, singles(kMany)), dense(kMany, singles(kMany));
  EXPECT_EQ(letters(sparse, all_up_to(4), 9), "pSpSpppSp");
  EXPECT_EQ(letters(dense, all_up_to(kMany * 7 / 8), 9), "pSbSbbbSb");
}

// Of nodes of several ranks. A long block goes straight, and the next survey finds it.
TEST(Surveys, ShortBlocksFromNodeToNodeAreMerged) {
  const Limits nodes{.nodes = test::blocked(std::vector<Rank>(kMany / 8, 8)).nodes};
  Team team(kMany, nodes);
  const Lengths lengths = [](Rank from, Rank to, int call) {
    const bool grows = call >= 21 && from == 5 && to == 9;
    return grows ? std::int64_t{1025} : (from + to) % 17;
  };
  EXPECT_EQ(letters(team, lengths, 40), "pSmSmmmSmmmmmmmS" + std::string(15, 'm') + "Spppppppp");
  EXPECT_EQ(team.counts(),
            (std::vector<std::pair<Why, std::uint64_t>>{
                {Why::kSurvey, 5}, {Why::kMerged, 26}, {Why::kUnknown, 1}, {Why::kLongBlocks, 8}}));
  // Bruck's exchange would not take the longest one.
  Team longer(kMany, nodes);
  EXPECT_EQ(letters(
                longer, [](Rank from, Rank to, int) { return from == 77 && to == 3 ? 300 : 8; }, 9),
            "pSmSmmmSm");
}

// By TCP a message costs so much that few ranks are enough.
TEST(Surveys, FewRanksAreEnoughBySockets) {
  const auto by = [](bool sockets, const std::vector<Rank>& nodes, std::int64_t bytes) {
    const Limits limits{.sockets = sockets, .nodes = test::blocked(nodes).nodes};
    Team team(limits.nodes->ranks(), limits);
    return letters(
        team, [=](Rank, Rank, int) { return bytes; }, 9);
  };
  EXPECT_EQ(by(false, {4, 4}, 8), "pSpSpppSp");
  EXPECT_EQ(by(true, {4, 4}, 8), "pSmSmmmSm");
  EXPECT_EQ(by(true, {2, 2}, 8), "pSpSpppSp");
  EXPECT_EQ(by(true, {4, 4, 4, 4}, 1024), "pSmSmmmSm");
  EXPECT_EQ(by(true, {4, 4, 4, 4}, 1025), "pSpSpppSp");
  EXPECT_EQ(by(false, std::vector<Rank>(24, 1), 8), "pSpSpppSp");
  EXPECT_EQ(by(true, std::vector<Rank>(24, 1), 8), "pSbSbbbSb");
}

// Call 21 grows, which its first stage tells all: the next ones go pairwise, up to the next survey
// that finds short ones.
TEST(Surveys, BlocksThatGrowEndIt) {
  Team team(kMany, singles(kMany));
  const Lengths lengths = [](Rank from, Rank to, int call) {
    const bool grows = call >= 21 && call <= 40 && from == 5 && to == 9;
    return grows ? std::int64_t{100000} : std::int64_t{8};
  };
  EXPECT_EQ(letters(team, lengths, 70), "pSbSbbbSbbbbbbbSbbbbb" + std::string(10, 'p') + "S" +
                                            std::string(31, 'p') + "Sbbbbbb");
}

// More tables in turn than are remembered: the plans tell.
TEST(Surveys, PlansThatAreMadeAnewTellOfFreshTables) {
  const Lengths same = [](Rank, Rank, int) { return std::int64_t{8}; };
  for (const bool are_new : {false, true}) {
    Team team(kMany, singles(kMany));
    EXPECT_EQ(letters(team, same, 15), "pSbSbbbSbbbbbbb");
    team.count_plans(are_new, 7);
    EXPECT_EQ(letters(team, same, 2), are_new ? "Sp" : "Sb");
  }
}

TEST(Surveys, AreMadeWhereTheyCanPay) {
  const auto why_not = [](const Limits& limits, Rank ranks, const Rules& rules = default_rules()) {
    return why_no_surveys({.collective = Collective::kAlltoallv, .ranks = ranks}, limits, rules);
  };
  EXPECT_EQ(why_not(singles(kMany), kMany), std::nullopt);
  for (const Rank ranks : {2, 3, 5, 7, 8, 13, 16}) {
    EXPECT_EQ(why_not(singles(ranks), ranks), Why::kFewRanks);
  }
  EXPECT_EQ(why_not({}, kMany), Why::kOneNode);
  Limits crowded = singles(kMany);
  crowded.crowded = true;
  EXPECT_EQ(why_not(crowded, kMany), Why::kSharedCores);
  crowded.nodes = test::blocked(std::vector<Rank>(kMany / 4, 4)).nodes;
  EXPECT_EQ(why_not(crowded, kMany), std::nullopt);
  const auto overridden = parse_rules("alltoallv=pairwise");
  ASSERT_TRUE(overridden.ok());
  EXPECT_EQ(why_not(singles(kMany), kMany, overridden.value()), Why::kOverride);
  // As long as nothing is known.
  EXPECT_EQ(select({.collective = Collective::kAlltoallv, .ranks = kMany}, singles(kMany),
                   default_rules())
                .algorithm->id,
            "alltoallv.pairwise");
}

TEST(Surveys, AreMadeWhereTheyAreAskedFor) {
  Rules rules = default_rules();
  rules.surveys = SurveyPolicy::kOn;
  const auto why_not = [&](const Limits& limits, Rank ranks) {
    return why_no_surveys({.collective = Collective::kAlltoallv, .ranks = ranks}, limits, rules);
  };
  Limits crowded = singles(kMany);
  crowded.crowded = true;
  EXPECT_EQ(why_not(crowded, kMany), std::nullopt);
  for (const Rank ranks : {2, 3, 5, 7, 8, 13}) {
    EXPECT_EQ(why_not(singles(ranks), ranks), std::nullopt);
  }
  EXPECT_EQ(why_not({}, kMany), Why::kOneNode);
  rules.surveys = SurveyPolicy::kOff;
  EXPECT_EQ(why_not(singles(kMany), kMany), Why::kSurveysOff);
}

// Every call is counted under one reason.
using Counts = std::vector<std::pair<Why, std::uint64_t>>;

Counts counts_after(int calls, const Lengths& lengths, Rank ranks = kMany) {
  Team team(ranks, singles(ranks));
  letters(team, lengths, calls);
  return team.counts();
}

TEST(Surveys, SayWhy) {
  using enum Why;
  const Lengths short_ones = [](Rank from, Rank to, int) { return (from + to) % 17; };
  EXPECT_EQ(counts_after(20, short_ones), (Counts{{kSurvey, 4}, {kPays, 15}, {kUnknown, 1}}));
  const Lengths long_ones = [](Rank from, Rank to, int) { return 300 + from + to; };
  EXPECT_EQ(counts_after(9, long_ones), (Counts{{kSurvey, 3}, {kUnknown, 1}, {kLongBlocks, 5}}));
  const Lengths new_ones = [](Rank from, Rank to, int call) {
    return (from * 31 + to * 17 + call * 7) % 23;
  };
  EXPECT_EQ(counts_after(9, new_ones), (Counts{{kSurvey, 3}, {kUnknown, 1}, {kNewTables, 5}}));
  EXPECT_EQ(counts_after(9, short_ones, 5), (Counts{{kSurvey, 3}, {kUnknown, 1}, {kSlower, 5}}));
  const Lengths growing = [](Rank from, Rank to, int call) {
    return call >= 6 && from == 5 && to == 9 ? std::int64_t{100000} : std::int64_t{8};
  };
  EXPECT_EQ(counts_after(9, growing),
            (Counts{{kSurvey, 3}, {kPays, 3}, {kUnknown, 1}, {kLongBlocks, 1}, {kGrown, 1}}));
}

// What comes over the network may be anything.
TEST(Surveys, NonsenseIsNoHarm) {
  const Limits limits = singles(kMany);
  Surveys surveys(kMany, limits, {});
  const std::vector<std::int64_t> bytes(kMany, 8);
  const Tables tables{bytes, bytes, bytes, bytes};
  surveys.next(tables);
  const AlgorithmChoice survey = surveys.next(tables);
  ASSERT_EQ(survey.algorithm->id, "alltoallv.survey");
  surveys.learn(survey, std::vector<std::int64_t>(kMany * kTableFacts, INT64_MAX));
  EXPECT_EQ(surveys.next(tables).algorithm->id, "alltoallv.pairwise");
  surveys.learn(survey, std::vector<std::int64_t>(kMany * kTableFacts, INT64_MIN));
  surveys.learn({.algorithm = find_algorithm("alltoallv.bruck_two_phase"), .params = {.k = 4}}, {});
}

}  // namespace
}  // namespace carillon
