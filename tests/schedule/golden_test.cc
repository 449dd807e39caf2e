// SPDX-License-Identifier: Apache-2.0
//
// The schedules of every algorithm for 5 ranks as text, against golden/<id>.sched: a change of a
// schedule shows as a diff. To accept one: golden_test --update (or
// CARILLON_UPDATE_GOLDEN=1 in the environment), then read the diff.
//
// The problem is 10 elements of 8 bytes, root 1, not in place; the chain's segment is 2 elements,
// so that one file shows a loop. Hierarchical algorithms, node trees, lanes and alltoallv.merged,
// which shows its first phase, have their ranks on two nodes, 3 and 2; bcast.domains in two NUMA
// domains.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/registry.h"
#include "schedule/text.h"
#include "support/oracle.h"
#include "support/registry.h"

namespace carillon {
namespace {

namespace fs = std::filesystem;

constexpr Rank kRanks = 5;
constexpr std::array<std::int32_t, kRanks> kTwoNodes{0, 0, 0, 1, 1};

bool update = false;

fs::path folder() { return "tests/schedule/golden"; }  // from the top of the checkout

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Shared problem(Collective collective) {
  return {.collective = collective,
          .ranks = kRanks,
          .root = has_root(collective) ? 1 : 0,
          .count = 10,
          .element_bytes = 8};
}

std::string text_of(const Algorithm& algorithm) {
  std::vector<Schedule> schedules;
  const Shared shared = problem(algorithm.collective);
  for (Rank rank = 0; rank < kRanks; ++rank) {
    Call call{.shared = shared, .rank = rank};
    const test::OwnedTables tables(test::Case{.shared = shared}, rank);
    call.local.tables = tables.view();
    if (algorithm.has_levels() || algorithm.traits.multicast || algorithm.traits.in_switch ||
        algorithm.id.ends_with(".lanes") || algorithm.id.ends_with(".node_tree") ||
        algorithm.id.ends_with(".merged")) {
      call.limits.nodes = std::make_shared<Nodes>(kTwoNodes);
    }
    if (algorithm.id == "bcast.domains") {
      call.limits.domains = std::make_shared<Nodes>(kTwoNodes);
      call.limits.domain_costs.cross_fs = 1'000'000'000;  // so that a domain of two has a head
    }
    if (algorithm.id == "bcast.chain") call.params.segment_bytes = 16;
    Result<Schedule> schedule = emit(algorithm, call);
    EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
    if (schedule.ok()) schedules.push_back(std::move(schedule.value()));
  }
  return to_text(schedules);
}

class Golden : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Golden, TextIsAsRecorded) {
  const fs::path path = folder() / (std::string(GetParam()->id) + ".sched");
  const std::string text = text_of(*GetParam());
  if (update) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(fs::exists(path)) << path << " is missing; run with --update";
  EXPECT_EQ(read(path), text) << "if this is meant: run with --update and read the diff";
}

TEST_P(Golden, TextIsReadBackExactly) {
  const std::string text = text_of(*GetParam());
  const Result<std::vector<Schedule>> parsed = parse_schedules(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  EXPECT_EQ(to_text(parsed.value()), text);
}

TEST(GoldenFolder, HoldsNothingElse) {
  std::set<std::string> expected;
  for (const Algorithm& algorithm : algorithms()) {
    expected.insert(std::string(algorithm.id) + ".sched");
  }
  for (const auto& entry : fs::directory_iterator(folder())) {
    EXPECT_TRUE(expected.contains(entry.path().filename().string()))
        << entry.path() << " belongs to no algorithm";
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Golden, testing::ValuesIn(test::all_algorithms()),
                         test::name_of_algorithm);

}  // namespace
}  // namespace carillon

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* const asked = std::getenv("CARILLON_UPDATE_GOLDEN");  // NOLINT(concurrency-mt-unsafe)
  carillon::update = (asked != nullptr && std::string_view(asked) == "1") ||
                     (argc > 1 && std::string_view(argv[1]) == "--update");
  return RUN_ALL_TESTS();
}
