// SPDX-License-Identifier: Apache-2.0
//
// The registry's answers to ids, parameters and problems, and that the catalogue is complete.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "algorithms/registry.h"
#include "support/oracle.h"
#include "support/shapes.h"

namespace carillon {
namespace {

namespace fs = std::filesystem;

fs::path repository() { return fs::current_path(); }  // where ctest runs it

TEST(Registry, IdsAreCollectiveAndFileName) {
  std::set<std::string> ids;
  for (const Algorithm& algorithm : algorithms()) {
    const std::string id(algorithm.id);
    EXPECT_TRUE(ids.insert(id).second) << id << " twice";
    const std::size_t dot = id.find('.');
    ASSERT_NE(dot, std::string::npos);
    EXPECT_EQ(id.substr(0, dot), collective_name(algorithm.collective));
    EXPECT_EQ(find_algorithm(id), &algorithm);
    EXPECT_FALSE(algorithm.description.empty());
    const fs::path file =
        repository() / "src/algorithms" / id.substr(0, dot) / (id.substr(dot + 1) + ".cc");
    EXPECT_TRUE(fs::exists(file)) << file;
  }
  const fs::path root = repository() / "src/algorithms";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".cc" || entry.path().parent_path() == root) continue;
    const std::string id =
        entry.path().parent_path().filename().string() + "." + entry.path().stem().string();
    EXPECT_TRUE(ids.contains(id)) << entry.path() << " has no row in the registry";
  }
}

TEST(Registry, EveryAlgorithmIsDocumented) {
  std::ifstream file(repository() / "docs/algorithms.md");
  std::ostringstream text;
  text << file.rdbuf();
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_NE(text.str().find("### " + std::string(algorithm.id) + "\n"), std::string::npos)
        << algorithm.id;
  }
}

TEST(ParseChoice, ReadsIdAndParameters) {
  const auto choice = parse_choice("allreduce.degree_k:k=4,segment=8192");
  ASSERT_TRUE(choice.ok()) << choice.status().to_string();
  EXPECT_EQ(choice.value().algorithm->id, "allreduce.degree_k");
  EXPECT_EQ(choice.value().params, (Params{4, 8192}));
  const auto other = parse_choice("allreduce=degree_k:k=4");
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other.value().algorithm, choice.value().algorithm);
  EXPECT_EQ(other.value().params, (Params{4, 0}));
  const auto whole = parse_choice("allreduce=allreduce.degree_k:k=4");
  ASSERT_TRUE(whole.ok()) << whole.status().to_string();
  EXPECT_EQ(to_text(whole.value()), "allreduce.degree_k:k=4");
  EXPECT_FALSE(parse_choice("bcast=allreduce.degree_k:k=4").ok());
  ASSERT_TRUE(parse_choice("bcast.chain").ok());
}

TEST(ParseChoice, SaysWhatIsWrongAndWhatWouldDo) {
  const auto message = [](std::string_view text) {
    const auto choice = parse_choice(text);
    EXPECT_FALSE(choice.ok()) << text;
    return choice.status().to_string();
  };
  EXPECT_EQ(message("gather.ring"),
            "invalid argument: there is no algorithm \"gather.ring\"; there are gather.flat, "
            "gather.linear, gather.binomial, gather.knomial, gather.node_tree");
  EXPECT_NE(message("sing.loud").find("alltoallv.pairwise"), std::string::npos);
  EXPECT_NE(message("").find("barrier.flat"), std::string::npos);
  EXPECT_EQ(message("bcast.knomial:k=1"), "invalid argument: bcast.knomial: k=1 is not in 2..1024");
  EXPECT_NE(message("bcast.knomial:k=99999999999").find("k=4"), std::string::npos);
  EXPECT_NE(message("bcast.knomial:k").find("k=4"), std::string::npos);
  EXPECT_NE(message("bcast.chain:segment=0").find("segment=8192"), std::string::npos);
  EXPECT_NE(message("bcast.chain:segment=8k").find("segment=8192"), std::string::npos);
  EXPECT_NE(message("bcast.chain:").find("there are k=NUMBER and segment=BYTES"),
            std::string::npos);
  EXPECT_NE(message("bcast.chain:depth=2").find("depth=2"), std::string::npos);
  EXPECT_NE(message("bcast.chain:k=2").find("has no parameter k"), std::string::npos);
  EXPECT_NE(message("barrier.flat:segment=8").find("has no parameter segment"), std::string::npos);
}

TEST(ParseChoice, ReadsLevels) {
  const auto choice = parse_choice("allreduce=hierarchical:node=flat_blocks,leaders=degree_k,k=2");
  ASSERT_TRUE(choice.ok()) << choice.status().to_string();
  const Algorithm& algorithm = *choice.value().algorithm;
  const Params& params = choice.value().params;
  const AlgorithmChoice before = level_choice(algorithm, Algorithm::kBefore, params);
  EXPECT_EQ(before.algorithm->id, "reduce.flat_blocks");
  EXPECT_EQ(before.params.k, 0);
  const AlgorithmChoice leaders = level_choice(algorithm, Algorithm::kLeaders, params);
  EXPECT_EQ(leaders.algorithm->id, "allreduce.degree_k");
  EXPECT_EQ(leaders.params.k, 2);
  // There is no bcast.flat_blocks: the default.
  EXPECT_EQ(level_choice(algorithm, Algorithm::kAfter, params).algorithm->id, "bcast.flat");
}

TEST(ParseChoice, ReadsListsAndRadix) {
  const auto choice = parse_choice("alltoall.bruck_inplace:k=4,memory=gather,copies=blocks");
  ASSERT_TRUE(choice.ok()) << choice.status().to_string();
  EXPECT_EQ(choice.value().params, (Params{.k = 4, .memory = "gather", .copy_blocks = true}));
  const auto message = [](std::string_view text) {
    const auto refused = parse_choice(text);
    EXPECT_FALSE(refused.ok()) << text;
    return refused.status().to_string();
  };
  EXPECT_EQ(
      message("alltoall.bruck_inplace:k=1"),
      "invalid argument: alltoall.bruck_inplace: k=1; a radix is from 2 to the number of ranks");
  EXPECT_EQ(message("alltoall.bruck_inplace:memory=park"),
            "invalid argument: \"memory=park\": there are memory=pack, memory=gather and "
            "memory=selective");
  EXPECT_NE(message("alltoall.bruck_inplace:copies=2").find("copies=runs and copies=blocks"),
            std::string::npos);
  EXPECT_NE(message("alltoall.pairwise:memory=pack").find("no parameters memory and copies"),
            std::string::npos);
}

TEST(Check, ARadixIsAtMostTheNumberOfRanks) {
  const Algorithm& algorithm = *find_algorithm("alltoall.bruck_resident");
  const auto status = [&](Rank ranks, std::int32_t radix) {
    const Shared shared{.collective = Collective::kAlltoall, .ranks = ranks, .count = 1};
    EXPECT_EQ(check(algorithm, shared, {.k = radix}).ok(),
              suits({&algorithm, {.k = radix}}, shared, {}));
    return check(algorithm, shared, {.k = radix}).to_string();
  };
  EXPECT_EQ(status(5, 5), Status().to_string());
  EXPECT_EQ(
      status(5, 6),
      "invalid argument: alltoall.bruck_resident: k=6 in a team of 5 ranks; a radix is from 2 "
      "to the number of ranks");
  EXPECT_EQ(status(1, 2), Status().to_string()) << "nothing is exchanged";
}

TEST(ParseChoice, ReadsItsOwnText) {
  for (const char* const text :
       {"bcast.flat", "bcast.knomial:k=3,segment=64", "reduce.degree_k:transfer=sendrecv",
        "alltoall.bruck_zerocopy:k=3,memory=pack,copies=blocks,transfer=sendrecv",
        "allreduce.hierarchical:k=2,segment=64,node=degree_k,leaders=ring"}) {
    const auto choice = parse_choice(text);
    ASSERT_TRUE(choice.ok()) << choice.status().to_string();
    EXPECT_EQ(to_text(choice.value()), text);
  }
}

TEST(ParseChoice, KnowsWhatCanBeTwoSided) {
  EXPECT_TRUE(parse_choice("bcast.chain:transfer=sendrecv").value().params.two_sided);
  EXPECT_FALSE(parse_choice("bcast.chain:transfer=put").value().params.two_sided);
  const auto refused = [](std::string_view text, std::string_view why) {
    const auto choice = parse_choice(text);
    return !choice.ok() && choice.status().message().find(why) != std::string_view::npos;
  };
  EXPECT_TRUE(refused("bcast.chain:transfer=dove", "transfer=put and transfer=sendrecv"));
  EXPECT_TRUE(refused("alltoallv.pairwise:transfer=sendrecv", "sends and receives as it is"));
}

TEST(Check, WantsMulticastWhereItIsUsed) {
  const Algorithm& algorithm = *find_algorithm("bcast.multicast_leader");
  const Shared shared{.collective = Collective::kBcast, .ranks = 5, .count = 8};
  EXPECT_TRUE(check(algorithm, shared, {}, {.multicast_bytes = 1}).ok());
  const Limits without{.multicast_bytes = 0};
  const Status status = check(algorithm, shared, {}, without);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("needs multicast"), std::string::npos);
  EXPECT_FALSE(suits({&algorithm, {}}, shared, without));
}

TEST(ParseChoice, SaysWhatIsWrongWithLevels) {
  const auto message = [](std::string_view text) {
    const auto choice = parse_choice(text);
    EXPECT_FALSE(choice.ok()) << text;
    return choice.status().to_string();
  };
  EXPECT_NE(message("bcast.flat:leaders=chain").find("has no levels"), std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:leaders=sing").find("leaders=sing"), std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:leaders=hierarchical").find("as in leaders=flat"),
            std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:leaders=multicast").find("is for whole teams"),
            std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:node=multicast").find("is for whole teams"),
            std::string::npos);
  EXPECT_NE(message("bcast.multicast:transfer=sendrecv").find("leave transfer out"),
            std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:leaders=ring").find("there is no bcast.ring"),
            std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:node=ring").find("within a node"), std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:k=1").find("k=1 is not in"), std::string::npos);
  EXPECT_NE(message("bcast.hierarchical:leaders=chain,k=3").find("no parameter k with these"),
            std::string::npos);
  EXPECT_NE(message("alltoall.hierarchical:leaders=bruck_inplace").find("all of one length"),
            std::string::npos);
}

TEST(Check, MindsTheNodes) {
  const Shared shared{
      .collective = Collective::kAllreduce, .ranks = 4, .count = 1, .commutative = false};
  const Algorithm& levels = *find_algorithm("allreduce.hierarchical");
  EXPECT_TRUE(check(levels, shared, {}, {.nodes = test::blocked({3, 1}).nodes}).ok());
  const Status dealt = check(levels, shared, {}, {.nodes = test::round_robin(4, 2).nodes});
  EXPECT_EQ(dealt.code(), Code::kUnsupported);
  EXPECT_NE(dealt.message().find("does not commute; use allreduce.flat"), std::string::npos);
  EXPECT_FALSE(check(levels, shared, {.leaders = "ring"}, {}).ok());
  EXPECT_FALSE(check(levels, shared, {}, {.nodes = test::blocked({2, 1}).nodes}).ok());
}

TEST(Check, RefusesWhatTheAlgorithmCannotDo) {
  const Algorithm& ring = *find_algorithm("allreduce.ring");
  Shared shared{.collective = Collective::kAllreduce, .ranks = 4, .count = 1};
  EXPECT_TRUE(check(ring, shared, {}).ok());
  EXPECT_FALSE(check(ring, shared, {.k = 3}).ok());
  shared.commutative = false;
  EXPECT_EQ(check(ring, shared, {}).code(), Code::kUnsupported);
  EXPECT_NE(check(ring, shared, {}).message().find("use allreduce.flat"), std::string::npos);
  shared.commutative = true;
  shared.ranks = 0;
  EXPECT_FALSE(check(ring, shared, {}).ok());
  shared = {.collective = Collective::kBcast, .ranks = 4};
  EXPECT_FALSE(check(ring, shared, {}).ok());
  shared.root = 4;
  EXPECT_FALSE(check(*find_algorithm("bcast.flat"), shared, {}).ok());
}

TEST(Emit, RefusesElementsThatDoNotFitInASlot) {
  const Shared shared{
      .collective = Collective::kAllreduce, .ranks = 2, .count = 1, .element_bytes = 100000};
  const auto schedule = emit(*find_algorithm("allreduce.flat"), {.shared = shared});
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.status().code(), Code::kUnsupported);
}

TEST(Emit, TwoRanksExchangeSmallVectorsInThreeOps) {
  const Shared shared{
      .collective = Collective::kAllreduce, .ranks = 2, .count = 1, .element_bytes = 8};
  for (const char* const id : {"allreduce.flat", "allreduce.recursive_doubling"}) {
    for (Rank rank = 0; rank < 2; ++rank) {
      const auto schedule = emit(*find_algorithm(id), {.shared = shared, .rank = rank});
      ASSERT_TRUE(schedule.ok());
      ASSERT_EQ(schedule.value().ops.size(), 3U) << id;
      EXPECT_EQ(schedule.value().ops[0].kind, OpKind::kPut);
      EXPECT_EQ(schedule.value().ops[0].message.channel, Channel::kPair);
      EXPECT_EQ(schedule.value().ops[1].kind, OpKind::kWait);
      EXPECT_EQ(schedule.value().ops[2].kind, OpKind::kReduce);
      EXPECT_EQ(schedule.value().scratch_bytes, 0);
    }
  }
}

// No cliffs: one rank more or less must not change what a collective costs by much.
TEST(Emit, NeighbouringTeamSizesCostAboutTheSame) {
  const auto most_ops = [](const Algorithm& algorithm, Rank ranks) {
    std::size_t most = 0;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Shared shared{.collective = algorithm.collective, .ranks = ranks, .count = 64};
      const test::OwnedTables tables({.shared = shared}, rank);
      const auto schedule =
          emit(algorithm, {.shared = shared, .local = {.tables = tables.view()}, .rank = rank});
      EXPECT_TRUE(schedule.ok());
      if (schedule.ok()) most = std::max(most, schedule.value().ops.size());
    }
    return most;
  };
  for (const Algorithm& algorithm : algorithms()) {
    const std::size_t at_power = most_ops(algorithm, 128);
    EXPECT_LE(most_ops(algorithm, 127), 2 * at_power) << algorithm.id;
    EXPECT_LE(most_ops(algorithm, 129), 2 * at_power) << algorithm.id;
  }
}

}  // namespace
}  // namespace carillon
