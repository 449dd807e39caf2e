// SPDX-License-Identifier: Apache-2.0
//
// Teams on nodes of several NUMA domains: every broadcast, and every other algorithm on a few,
// proved and interpreted; what crosses into each domain; and what verify says of messages to a
// domain that are wrong.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "schedule/text.h"
#include "support/hand_team.h"
#include "support/registry.h"
#include "support/shapes.h"
#include "support/trial.h"

namespace carillon {
namespace {

using test::blocked;
using test::for_each_trial;
using test::interpret_trial;
using test::round_robin;
using test::Trial;
using test::verify_trial;

// Who shares a node, and who a domain.
struct Place {
  std::shared_ptr<const Nodes> nodes, domains;
  // Where crossing costs so much that every domain has a head.
  [[nodiscard]] Limits limits(std::int64_t slot_bytes, std::int32_t inline_bytes) const {
    return {.slot_bytes = slot_bytes,
            .inline_bytes = inline_bytes,
            .domain_costs = {.cross_fs = 1'000'000'000},
            .nodes = nodes,
            .domains = domains};
  }
  [[nodiscard]] Rank ranks() const { return domains->ranks(); }
};

std::vector<Place> few_places() {
  return {{nullptr, blocked({3, 2}).nodes},
          {blocked({4, 3}).nodes, blocked({2, 2, 3}).nodes},
          {round_robin(8, 2).nodes, round_robin(8, 4).nodes}};  // in turn
}

// One node, even and uneven ones, domains of one rank, and such whose ranks take turns.
std::vector<Place> places() {
  std::vector<Place> list{{nullptr, blocked({1, 1}).nodes},
                          {nullptr, blocked({2, 1}).nodes},
                          {nullptr, blocked({1, 4, 3}).nodes},
                          {nullptr, round_robin(7, 2).nodes},
                          {blocked({2, 1}).nodes, blocked({1, 1, 1}).nodes},
                          {blocked({3, 1, 3}).nodes, blocked({2, 1, 1, 3}).nodes},
                          {blocked({6, 6}).nodes, blocked({3, 1, 2, 2, 2, 2}).nodes},
                          {blocked({13}).nodes, blocked({4, 4, 4, 1}).nodes},
                          {blocked({8, 5}).nodes, blocked({3, 3, 2, 5}).nodes}};
  for (const Place& place : few_places()) list.push_back(place);
  return list;
}

std::vector<const Algorithm*> broadcasts() {
  std::vector<const Algorithm*> list = test::all_algorithms();
  std::erase_if(list, [](const Algorithm* each) { return each->collective != Collective::kBcast; });
  return list;
}

class BroadcastsInDomains : public testing::TestWithParam<const Algorithm*> {};

TEST_P(BroadcastsInDomains, AreProvedCorrect) {
  for (const Place& place : places()) {
    const std::vector<std::int64_t> counts{0, 1, 2, 3, 5, 7, 8, 13, 43};
    for_each_trial(*GetParam(), place.ranks(), place.limits(64, 16), true, counts, verify_trial);
    for_each_trial(*GetParam(), place.ranks(), place.limits(65536, 56), false, {7, 1000},
                   verify_trial);
    std::uint64_t seed = 0;
    for_each_trial(*GetParam(), place.ranks(), place.limits(64, 16), false, {1, 9, 43},
                   [&](const Trial& trial) { interpret_trial(trial, seed++); });
  }
}

// Two nodes, each of two domains, with their ranks in a row or in turn; and one of three.
TEST(Domains, AreProvedForAllSizes) {
  for (Rank ranks = 2; ranks <= 33; ++ranks) {
    const auto parts = [ranks](std::int32_t count) {
      std::vector<std::int32_t> names;
      for (Rank rank = 0; rank < ranks; ++rank) names.push_back(rank * count / ranks);
      return std::make_shared<const Nodes>(names);
    };
    const Place shapes[] = {{parts(2), parts(4)},
                            {round_robin(ranks, 2).nodes, round_robin(ranks, 4).nodes},
                            {nullptr, parts(3)}};
    for (const Place& place : shapes) {
      for (const char* const id :
           {"bcast.domains", "bcast.hierarchical", "bcast.multicast_leader"}) {
        for_each_trial(*find_algorithm(id), ranks, place.limits(64, 16), false, {1, 43},
                       verify_trial);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, BroadcastsInDomains, testing::ValuesIn(broadcasts()),
                         test::name_of_algorithm);

class AllInDomains : public testing::TestWithParam<const Algorithm*> {};

TEST_P(AllInDomains, AreProvedCorrect) {
  for (const Place& place : few_places()) {
    const auto prove = [&](const Trial& trial) {
      const Status status =
          check(trial.algorithm, trial.problem.shared, trial.params, trial.limits);
      if (status.ok()) verify_trial(trial);
    };
    for_each_trial(*GetParam(), place.ranks(), place.limits(64, 16), false, {0, 1, 9, 43}, prove);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, AllInDomains, testing::ValuesIn(test::all_algorithms()),
                         test::name_of_algorithm);

Result<Schedule> schedule_of(const std::string& algorithm, const Limits& limits, Shared shared,
                             Rank rank) {
  const auto choice = parse_choice(algorithm);
  if (!choice.ok()) return choice.status();
  return emit(*choice.value().algorithm,
              {.shared = shared, .rank = rank, .limits = limits, .params = choice.value().params});
}

// By the writers' and readers' domains: how many bytes are read of messages, by copies of all
// ranks.
std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> crossings(
    const std::string& algorithm, const Place& place, Rank root, std::int64_t bytes) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> sums;
  const Limits limits = place.limits(65536, 56);
  for (Rank rank = 0; rank < place.ranks(); ++rank) {
    const Result<Schedule> schedule =
        schedule_of(algorithm, limits, {Collective::kBcast, place.ranks(), root, bytes, 1}, rank);
    EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
    for (const Op& op : schedule.value().ops) {
      if (op.kind != OpKind::kCopy) continue;
      for (const Buffer& from : schedule.value().src(op)) {
        if (from.space != Space::kSlot || !limits.share_node(from.message.peer, rank)) continue;
        const std::int32_t writer = place.domains->node_of(from.message.peer);
        const std::int32_t reader = place.domains->node_of(rank);
        if (writer != reader) sums[{writer, reader}] += from.range.length;
      }
    }
  }
  return sums;
}

TEST(Domains, OneCopyCrossesIntoEach) {
  constexpr std::int64_t kBytes = 5000;
  const Place place{blocked({8, 8}).nodes, blocked({3, 3, 2, 4, 4}).nodes};
  for (Rank root = 0; root < place.ranks(); ++root) {
    for (const char* const algorithm :
         {"bcast.multicast_leader", "bcast.hierarchical:leaders=binomial"}) {
      // Into each domain of a node but that of the rank that has it first.
      const auto sums = crossings(algorithm, place, root, kBytes);
      EXPECT_EQ(sums.size(), 3U) << algorithm << " root " << root;
      for (const auto& [way, bytes] : sums) EXPECT_EQ(bytes, kBytes) << algorithm;
    }
    const auto flat = crossings("bcast.hierarchical:node=flat", place, root, kBytes);
    for (const auto& [way, bytes] : flat) EXPECT_GE(bytes, 2 * kBytes);
  }
}

// Of how many messages the rank writes the bytes.
std::int64_t puts_of(const Schedule& schedule) {
  return std::ranges::count_if(schedule.ops, [](const Op& op) { return op.kind == OpKind::kPut; });
}

TEST(Domains, TheWriterWritesOnce) {
  const Place place{nullptr, blocked({3, 3, 2, 4}).nodes};
  const Shared shared{Collective::kBcast, place.ranks(), 4, 5000, 1};
  for (Rank rank = 0; rank < place.ranks(); ++rank) {
    const auto schedule = schedule_of("bcast.domains", place.limits(65536, 56), shared, rank);
    ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
    const bool writes = rank == 0 || rank == shared.root || rank == 6 || rank == 8;
    EXPECT_EQ(puts_of(schedule.value()), writes ? 1 : 0) << rank;
  }
}

// Where a head's copy costs more than it saves, a broadcast is what it is without domains.
TEST(Domains, WithoutHeadsAreFlat) {
  struct Few {
    std::vector<Rank> domains;
    std::int64_t bytes;
    DomainCosts costs;
  };
  const DomainCosts free{.cross_fs = 0};
  const Few cases[] = {{{2, 2, 2, 2, 2, 2, 2, 2}, 1 << 20, {}},
                       {{4, 4}, 1 << 20, {}},
                       {{8, 8}, 1024, {}},
                       {{8, 8}, 1 << 20, free}};
  for (const Few& few : cases) {
    Limits limits{.domain_costs = few.costs};
    limits.domains = blocked(few.domains).nodes;
    const Rank ranks = limits.domains->ranks();
    const Shared shared{Collective::kBcast, ranks, 3, few.bytes, 1};
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto domains = schedule_of("bcast.domains", limits, shared, rank);
      const auto flat = schedule_of("bcast.flat", limits, shared, rank);
      ASSERT_TRUE(domains.ok() && flat.ok()) << domains.status().to_string();
      EXPECT_EQ(to_text(domains.value()), to_text(flat.value()));
    }
  }
}

// The same costs, and enough ranks and bytes; of these domains only the one of eight.
TEST(Domains, AHeadIsWhereItPays) {
  Limits limits;
  limits.domains = blocked({1, 8, 3}).nodes;
  const Shared shared{Collective::kBcast, 12, 0, 4096, 1};
  for (Rank rank = 0; rank < shared.ranks; ++rank) {
    const auto schedule = schedule_of("bcast.domains", limits, shared, rank);
    ASSERT_TRUE(schedule.ok()) << schedule.status().to_string();
    EXPECT_EQ(puts_of(schedule.value()), rank == 0 || rank == 1 ? 1 : 0) << rank;
  }
}

TeamCall five_in_domains() {
  TeamCall call{.shared = {.collective = Collective::kBcast, .ranks = 5, .root = 0, .count = 8},
                .limits = {},
                .locals = {}};
  call.limits.domains = blocked({3, 2}).nodes;
  return call;
}

TEST(Domains, WhatIsWrongIsRejected) {
  const std::string right =
      "schedule ranks 5 rank 0 scratch 0\n"
      "put 3 #0 input[0+8]\n"
      "put domain #0 input[0+8]\n"
      "schedule ranks 5 rank 1 scratch 0\n"
      "wait 0 domain #0\n"
      "copy output[0+8] = slot(0 domain #0)[0+8]\n"
      "schedule ranks 5 rank 2 scratch 0\n"
      "wait 0 domain #0\n"
      "copy output[0+8] = slot(0 domain #0)[0+8]\n"
      "schedule ranks 5 rank 3 scratch 0\n"
      "wait 0 #0\n"
      "copy output[0+8] = slot(0 #0)[0+8]\n"
      "put domain #0 output[0+8]\n"
      "schedule ranks 5 rank 4 scratch 0\n"
      "wait 3 domain #0\n"
      "copy output[0+8] = slot(3 domain #0)[0+8]\n";
  const Report report = verify(five_in_domains(), test::emit_text(right));
  EXPECT_TRUE(report.ok()) << report.status.to_string();
  struct Broken {
    const char *from, *to, *reason;
  };
  const Broken cases[] = {
      {"wait 3 domain #0\ncopy output[0+8] = slot(3 domain #0)[0+8]",
       "wait 0 domain #0\ncopy output[0+8] = slot(0 domain #0)[0+8]",
       "a message to a domain does not leave it"},
      {"wait 0 domain #0\ncopy output[0+8] = slot(0 domain #0)[0+8]\nschedule ranks 5 rank 2",
       "schedule ranks 5 rank 2", "was never waited for by rank 1"},
      {"wait 3 domain #0\ncopy output[0+8] = slot(3 domain #0)[0+8]",
       "wait 3 all #0\ncopy output[0+8] = slot(3 all #0)[0+8]", "deadlock"},
      {"put domain #0 output[0+8]", "put domain #0 output[0+4]", "slot"},
  };
  for (const Broken& broken : cases) {
    const std::string text = test::replaced(right, broken.from, broken.to);
    const Report wrong = verify(five_in_domains(), test::emit_text(text));
    ASSERT_FALSE(wrong.ok()) << text;
    EXPECT_NE(wrong.status.message().find(broken.reason), std::string::npos)
        << text << "got:    " << wrong.status.message() << "\nwanted: " << broken.reason;
  }
}

TEST(Domains, MustBePartsOfNodes) {
  TeamCall call = five_in_domains();
  call.limits.nodes = blocked({2, 3}).nodes;
  Report report = verify(call, test::emit_text("schedule ranks 5 rank 0 scratch 0\n"));
  EXPECT_NE(report.status.message().find("a domain that is not of one node"), std::string::npos)
      << report.status.to_string();
  call.limits.nodes = nullptr;
  call.limits.domains = blocked({3, 1}).nodes;
  report = verify(call, test::emit_text("schedule ranks 5 rank 0 scratch 0\n"));
  EXPECT_NE(report.status.message().find("domains of another number"), std::string::npos)
      << report.status.to_string();
}

}  // namespace
}  // namespace carillon
