// SPDX-License-Identifier: Apache-2.0
//
// Every algorithm of the registry through the C API on real ranks, against the oracle: the third
// reading beside verify and interpret (tests/schedule/conformance_test.cc). A new algorithm is
// covered by its registry row. Ranks are processes, and, with fewer cases, threads (for the
// thread sanitizer). CARILLON_TEST_FEW=1: of counts and roots the first and the last, and of cases
// one in three (support/turn.h), for machines that are emulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "support/engine_trial.h"
#include "support/shapes.h"
#include "support/turn.h"

namespace carillon::test {
namespace {

// What one job of ranks goes through: one algorithm of each collective.
struct Plan {
  Rank ranks = 1;
  std::vector<const Algorithm*> algorithms;  // at most one per collective
  std::vector<std::int64_t> counts;
  std::string slot_bytes;  // CARILLON_SLOT_BYTES
  bool every_root = true;
  Shape shape = {};                  // all ranks on one node unless given
  std::string parameters;            // of all algorithms: ":k=3"
  std::string lend_bytes = "0";      // CARILLON_LEND_BYTES
  std::string uncached_bytes = "0";  // CARILLON_UNCACHED_BYTES
  std::string fetch_bytes = "0";     // CARILLON_FETCH_BYTES
  std::string gather_entries = "0";  // CARILLON_GATHER_ENTRIES
  std::string place_bytes = "0";     // CARILLON_PLACE_BYTES
  std::string multicast = "off";     // CARILLON_MULTICAST
  std::string domains;               // CARILLON_DOMAIN_RANKS

  void set_environment() const {
    setenv("CARILLON_NODE_RANKS", shape.name.c_str(), 1);
    setenv("CARILLON_DOMAIN_RANKS", domains.c_str(), 1);
    setenv("CARILLON_CROSS_PS", "1000000", 1);  // every domain has a head
    std::string choice;
    for (const Algorithm* algorithm : algorithms)
      choice += std::string(algorithm->id) + parameters + ";";
    setenv("CARILLON_ALGORITHM", choice.c_str(), 1);
    setenv("CARILLON_SLOT_BYTES", slot_bytes.c_str(), 1);
    setenv("CARILLON_LEND_BYTES", lend_bytes.c_str(), 1);
    setenv("CARILLON_UNCACHED_BYTES", uncached_bytes.c_str(), 1);
    setenv("CARILLON_FETCH_BYTES", fetch_bytes.c_str(), 1);
    setenv("CARILLON_GATHER_ENTRIES", gather_entries.c_str(), 1);
    setenv("CARILLON_GATHER_BYTES", "1", 1);
    setenv("CARILLON_PLACE_BYTES", place_bytes.c_str(), 1);
    setenv("CARILLON_MULTICAST", multicast.c_str(), 1);
    setenv("CARILLON_MULTICAST_JOIN_S", "60", 1);
  }
  [[nodiscard]] std::vector<Case> cases(const Algorithm& algorithm) const;
};

std::vector<Case> Plan::cases(const Algorithm& algorithm) const {
  const bool few = std::getenv("CARILLON_TEST_FEW") != nullptr;
  std::set<Rank> roots{0};
  if (has_root(algorithm.collective)) {
    roots.insert(ranks - 1);
    for (Rank root = 0; every_root && !few && root < ranks; ++root) roots.insert(root);
  }
  const std::set<std::int64_t> ends{std::max<std::int64_t>(counts.front(), 1), counts.back()};
  const std::set<std::int64_t> all_counts(counts.begin(), counts.end());
  std::vector<Case> all;
  for (const Rank root : roots) {
    for (const bool commutative : {true, false}) {
      const bool reduces = has_reduction(algorithm.collective);
      if (!commutative && (!reduces || algorithm.needs_commutative)) continue;
      for (const std::int64_t count : few ? ends : all_counts) {
        const Shared shared{algorithm.collective, ranks, root, count, kElement, commutative};
        const std::int64_t multicast_bytes = multicast == "off" ? 0 : 1;
        const Limits limits{.multicast_bytes = multicast_bytes, .nodes = shape.nodes};
        if (!suits({&algorithm, {}}, shared, limits)) continue;
        all.push_back({shared, false});
        if (in_place_allowed(shared, root)) all.push_back({shared, true});
        if (algorithm.collective == Collective::kBarrier) break;
      }
    }
  }
  return all;
}

// What a team goes through: of more than three ranks, or where there are few, cases have turns.
std::vector<Case> with_turns_of(const Plan& plan, const Algorithm& algorithm) {
  const bool few = std::getenv("CARILLON_TEST_FEW") != nullptr;
  return with_turns(plan.ranks > 8 || few ? 3 : plan.ranks > 3 ? 2 : 1, plan.cases(algorithm));
}

// Each case blocking, then all of them non-blocking, a few at a time, ended in reverse order.
void run_cases(const Algorithm& algorithm, const std::vector<Case>& cases, crl_team_h team,
               crl_op_t affine) {
  for (const Case& problem : cases) {
    Trial trial(problem, team, affine);
    expect_ok(trial.call(), "blocking");
    EXPECT_EQ(trial.complaint(), "") << text_of(problem);
    EXPECT_EQ(crl_team_last_algorithm(team), algorithm.id) << text_of(problem);
    if (testing::Test::HasFailure()) return;
  }
  constexpr std::size_t kAtOnce = 7;
  for (std::size_t first = 0; first < cases.size(); first += kAtOnce) {
    std::vector<Trial> trials;
    for (std::size_t i = first; i < std::min(first + kAtOnce, cases.size()); ++i) {
      trials.emplace_back(cases[i], team, affine);
    }
    for (Trial& trial : trials) expect_ok(trial.start(), "start");
    for (std::size_t i = trials.size(); i-- > 0;) {
      expect_ok(trials[i].wait(), "wait");
      EXPECT_EQ(trials[i].complaint(), "") << "non-blocking " << text_of(cases[first + i]);
    }
    if (testing::Test::HasFailure()) return;
  }
}

void run_rank(const Plan& plan, Meeting& world, Meeting& members, int rank) {
  crl_context_h context = make_context(world, rank);
  crl_team_h team = make_team(context, members.oob(rank));
  crl_op_t affine = 0;
  expect_ok(crl_op_create(affine_op, nullptr, 0, &affine));
  for (const Algorithm* algorithm : plan.algorithms) {
    run_cases(*algorithm, with_turns_of(plan, *algorithm), team, affine);
    // A rank that ends early would only make the others wait.
    if (testing::Test::HasFailure()) break;
  }
  crl_op_free(affine);
  crl_team_destroy(team);
  crl_context_destroy(context);
}

// Round i takes the i-th algorithm of every collective, but for those that multicast: there they
// have rounds of their own. What goes through switches is tests/cli/switch_test.py's.
std::vector<std::vector<const Algorithm*>> rounds() {
  std::vector<std::vector<const Algorithm*>> by_collective(kCollectives), all;
  std::size_t most = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.traits.multicast || algorithm.traits.in_switch) continue;
    auto& group = by_collective[static_cast<std::size_t>(algorithm.collective)];
    group.push_back(&algorithm);
    most = std::max(most, group.size());
  }
  for (std::size_t round = 0; round < most; ++round) {
    all.emplace_back();
    for (const auto& group : by_collective) {
      if (round < group.size()) all.back().push_back(group[round]);
    }
  }
  return all;
}

std::vector<std::int64_t> small_counts(Rank ranks) {
  const std::set<std::int64_t> counts{0, 1, ranks - 1, ranks + 1, 31, 127, 129, 643};
  return {counts.begin(), counts.end()};
}

class ProcessConformance : public testing::TestWithParam<Rank> {
 protected:
  void TearDown() override { clear_environment(); }

 public:
  static void clear_environment() {
    unsetenv("CARILLON_ALGORITHM");
    unsetenv("CARILLON_SLOT_BYTES");
    unsetenv("CARILLON_NODE_RANKS");
    unsetenv("CARILLON_DOMAIN_RANKS");
    unsetenv("CARILLON_CROSS_PS");
    unsetenv("CARILLON_LEND_BYTES");
    unsetenv("CARILLON_UNCACHED_BYTES");
    unsetenv("CARILLON_FETCH_BYTES");
    unsetenv("CARILLON_GATHER_ENTRIES");
    unsetenv("CARILLON_GATHER_BYTES");
    unsetenv("CARILLON_MULTICAST");
    unsetenv("CARILLON_MULTICAST_JOIN_S");
  }
};

void run_as_processes(const Plan& plan) {
  Meeting world(plan.ranks), members(plan.ranks);
  plan.set_environment();
  expect_processes_ok(plan.ranks, [&](int rank) { run_rank(plan, world, members, rank); });
}

class ThreadConformance : public ProcessConformance {};

// Slots of 1 KiB: 128 elements less one, and one more; five slots and a bit.
TEST_P(ProcessConformance, SmallSlots) {
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = small_counts(GetParam()),
                      .slot_bytes = "1024"});
    if (testing::Test::HasFailure()) return;
  }
}

class ProcessDefaultSlots : public ProcessConformance {};

// The default slots of 64 KiB: 8192 elements less one, and one more.
TEST_P(ProcessDefaultSlots, AllAlgorithms) {
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = {1, 8191, 8193},
                      .slot_bytes = "65536",
                      .every_root = false});
    if (testing::Test::HasFailure()) return;
  }
}

// Past the writer's cache: such messages are copied and reduced as parts side by side, where they
// are long enough, and what is left of them.
TEST_P(ProcessDefaultSlots, Uncached) {
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = {2051, 8191},
                      .slot_bytes = "65536",
                      .every_root = false,
                      .lend_bytes = "0",
                      .uncached_bytes = "64"});
    if (testing::Test::HasFailure()) return;
  }
}

// Messages of several slots, which go the way that the settings say.
void run_ways(Rank ranks, const std::string& lend_bytes, const std::string& uncached_bytes) {
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = ranks,
                      .algorithms = round,
                      .counts = {1, 129, 643},
                      .slot_bytes = "1024",
                      .every_root = false,
                      .lend_bytes = lend_bytes,
                      .uncached_bytes = uncached_bytes});
    if (testing::Test::HasFailure()) return;
  }
}

// Messages are read in the writer's memory, all but the shortest.
TEST_P(ProcessConformance, Lent) { run_ways(GetParam(), "64", "0"); }

// They go to shared memory past the writer's cache, all but the shortest.
TEST_P(ProcessConformance, Uncached) { run_ways(GetParam(), "0", "64"); }

// As is learned: some go each way.
TEST_P(ProcessConformance, AnyWay) { run_ways(GetParam(), "-1", "-1"); }

// Of those that can be told to send and receive.
std::vector<std::vector<const Algorithm*>> two_sided_rounds() {
  auto all = rounds();
  for (auto& round : all) {
    std::erase_if(round, [](const Algorithm* algorithm) { return !algorithm->has_transfer(); });
  }
  return all;
}

// The same messages by send and recv.
TEST_P(ProcessConformance, TwoSided) {
  for (const auto& round : two_sided_rounds()) {
    run_as_processes({.ranks = GetParam(),
                      .algorithms = round,
                      .counts = {0, 1, 129, 643},
                      .slot_bytes = "1024",
                      .every_root = false,
                      .parameters = ":transfer=sendrecv"});
    if (testing::Test::HasFailure()) return;
  }
}

// A part of a schedule that has strands of its own: the operator that does not commute makes
// degree_k pass its result on to the root.
TEST_P(ProcessConformance, StrandsOfAGroup) {
  run_as_processes({.ranks = GetParam(),
                    .algorithms = {find_algorithm("reduce.hierarchical")},
                    .counts = {1, 129, 643},
                    .slot_bytes = "1024",
                    .parameters = ":node=degree_k"});
}

TEST_P(ThreadConformance, SmallSlots) {
  for (const auto& round : rounds()) {
    const Plan plan{.ranks = GetParam(),
                    .algorithms = round,
                    .counts = {1, 129, 643},
                    .slot_bytes = "1024",
                    .every_root = false};
    Meeting world(plan.ranks), members(plan.ranks);
    plan.set_environment();
    run_threads(plan.ranks, [&](int rank) { run_rank(plan, world, members, rank); });
    if (testing::Test::HasFailure()) return;
  }
}

class NodesConformance : public testing::TestWithParam<Shape> {
 protected:
  void TearDown() override { ProcessConformance::clear_environment(); }
};

// Ranks that count as several nodes speak over the machine's network.
TEST_P(NodesConformance, SmallSlots) {
  const Shape& shape = GetParam();
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = shape.ranks(),
                      .algorithms = round,
                      .counts = {0, 1, shape.ranks() + 1, 129, 643},
                      .slot_bytes = "1024",
                      .every_root = shape.ranks() < 5,
                      .shape = shape});
    if (testing::Test::HasFailure()) return;
  }
}

// Larger slots show no more of larger teams.
class NodesDefaultSlots : public NodesConformance {};

TEST_P(NodesDefaultSlots, AllAlgorithms) {
  const Shape& shape = GetParam();
  for (const auto& round : rounds()) {
    run_as_processes({.ranks = shape.ranks(),
                      .algorithms = round,
                      .counts = {8193},
                      .slot_bytes = "65536",
                      .every_root = false,
                      .shape = shape});
    if (testing::Test::HasFailure()) return;
  }
}

// The rounds with messages of one slot and of many.
void run_both_slots(const std::vector<std::vector<const Algorithm*>>& all, Plan plan) {
  plan.ranks = plan.shape.ranks();
  plan.every_root = false;
  for (const auto& round : all) {
    plan.algorithms = round;
    plan.slot_bytes = "1024";
    plan.counts = {0, 9, 129, 643};
    run_as_processes(plan);
    plan.slot_bytes = "65536";
    plan.counts = {8193};
    if (!testing::Test::HasFailure() && plan.ranks <= 3) run_as_processes(plan);
    if (testing::Test::HasFailure()) return;
  }
}

class NodesTwoSided : public NodesConformance {};

TEST_P(NodesTwoSided, BothSlots) {
  run_both_slots(two_sided_rounds(), {.shape = GetParam(), .parameters = ":transfer=sendrecv"});
}

class NodesFetched : public NodesConformance {};

// Messages are got from where they stand, all but the shortest.
TEST_P(NodesFetched, BothSlots) {
  run_both_slots(rounds(), {.shape = GetParam(), .fetch_bytes = "64"});
}

class NodesGathered : public NodesConformance {};

// What is put to other nodes is read from where it stands, in lists of at most two.
TEST_P(NodesGathered, BothSlots) {
  run_both_slots(rounds(), {.shape = GetParam(), .gather_entries = "2"});
}

TEST_P(NodesGathered, SentAndReceived) {
  run_both_slots(two_sided_rounds(),
                 {.shape = GetParam(), .parameters = ":transfer=sendrecv", .gather_entries = "2"});
}

// What is sent to other nodes is placed.
TEST_P(NodesGathered, Placed) {
  run_both_slots(two_sided_rounds(), {.shape = GetParam(),
                                      .parameters = ":transfer=sendrecv",
                                      .gather_entries = "2",
                                      .place_bytes = "1"});
}

// What is got goes to the places of lists.
TEST_P(NodesGathered, AndFetched) {
  run_both_slots(rounds(), {.shape = GetParam(), .fetch_bytes = "64", .gather_entries = "2"});
}

class Radixes : public NodesConformance {};

// Four messages a round, of a part of a slot and of several.
TEST_P(Radixes, MoreThanThree) {
  for (const char* const layout : {"inplace", "resident", "reversed", "zerocopy"}) {
    run_as_processes({.ranks = GetParam().ranks(),
                      .algorithms = {find_algorithm("alltoall.bruck_" + std::string(layout)),
                                     find_algorithm("alltoallv.bruck_two_phase")},
                      .counts = {3, 31, 643},
                      .slot_bytes = "1024",
                      .shape = GetParam(),
                      .parameters = ":k=5",
                      .gather_entries = "3"});
    if (testing::Test::HasFailure()) return;
  }
}

class NodesMulticast : public NodesConformance {};

std::vector<std::vector<const Algorithm*>> multicast_rounds() {
  std::vector<std::vector<const Algorithm*>> all;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.traits.multicast) all.push_back({&algorithm});
  }
  return all;
}

// Over the machine's loopback, which copies multicasts as a switch does, or what
// CARILLON_TEST_MULTICAST names.
TEST_P(NodesMulticast, BothSlots) {
  const char* const carrier = getenv("CARILLON_TEST_MULTICAST");
  run_both_slots(multicast_rounds(),
                 {.shape = GetParam(), .multicast = carrier == nullptr ? "udp:lo" : carrier});
}

// Nodes of several NUMA domains: "3,2" in turn.
class InDomains : public NodesConformance {};

TEST_P(InDomains, AllAlgorithms) {
  for (const std::string lend_bytes : {"0", "64"}) {
    run_both_slots(rounds(), {.shape = GetParam(), .lend_bytes = lend_bytes, .domains = "3,2"});
    if (testing::Test::HasFailure()) return;
  }
}

class MulticastInDomains : public NodesConformance {};

TEST_P(MulticastInDomains, BothSlots) {
  const char* const carrier = getenv("CARILLON_TEST_MULTICAST");
  for (const char* const domains : {"3,2", "rr:2"}) {
    run_both_slots({{find_algorithm("bcast.multicast_leader")}},
                   {.shape = GetParam(),
                    .multicast = carrier == nullptr ? "udp:lo" : carrier,
                    .domains = domains});
    if (testing::Test::HasFailure()) return;
  }
}

std::string name_of(const testing::TestParamInfo<Shape>& param) {
  std::string name = param.param.name;
  for (char& c : name) c = std::isalnum(c) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, NodesConformance,
                         testing::Values(blocked({1, 1}), blocked({1, 1, 1}), blocked({2, 2}),
                                         blocked({3, 1, 1}), blocked({1, 6}), round_robin(5, 2),
                                         blocked({2, 3, 3}), blocked({4, 4, 4, 1})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesDefaultSlots,
                         testing::Values(blocked({1, 1, 1}), blocked({2, 2}), round_robin(5, 2),
                                         blocked({2, 3, 3})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesTwoSided,
                         testing::Values(blocked({1, 1}), blocked({3, 1, 1}), round_robin(5, 2)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesFetched,
                         testing::Values(blocked({1, 1, 1}), round_robin(5, 2)), name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesMulticast,
                         testing::Values(blocked({1, 1, 1}), blocked({3, 2, 2}), round_robin(5, 2)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, InDomains, testing::Values(blocked({8}), blocked({5, 3})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, MulticastInDomains, testing::Values(blocked({5, 3})), name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, NodesGathered,
                         testing::Values(blocked({1, 1, 1}), round_robin(5, 2)), name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, Radixes, testing::Values(blocked({1, 6}), blocked({2, 3, 3})),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Ranks, ProcessConformance, testing::Values(1, 2, 3, 4, 5, 7, 8, 13, 16));
INSTANTIATE_TEST_SUITE_P(Ranks, ProcessDefaultSlots, testing::Values(1, 2, 3, 4, 5, 7));
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadConformance, testing::Values(1, 2, 3, 4, 5));

}  // namespace
}  // namespace carillon::test
