// SPDX-License-Identifier: Apache-2.0
//
// Verifier, interpreter and engine beside one another, on schedules that no algorithm has: random
// ones, and such with a small damage. What verify accepts the interpreter does in any order, and
// real ranks do, all with the bytes that the collective is to have.
// CARILLON_TEST_FUZZ_TEAMS: how many are written for each setting.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "api/objects.h"
#include "schedule/interpret.h"
#include "schedule/text.h"
#include "schedule/verify.h"
#include "support/calls.h"
#include "support/mutator.h"
#include "support/operators.h"
#include "support/random_team.h"
#include "support/shapes.h"

namespace carillon::test {
namespace {

constexpr std::int32_t kElement = 8;

// Where the ranks are, and which ways their messages go: settings, "LEND_BYTES=64 CROWDED=1".
struct Setting {
  std::string name;
  Shape shape;
  std::string environment;
  std::int64_t slot_bytes = 1024;
  int most_count = 300;
  std::int32_t gather_entries = 1;
  bool sends = false;

  [[nodiscard]] Limits limits() const {
    Limits limits{.slot_bytes = slot_bytes, .gather_entries = gather_entries};
    if (shape.nodes->count() > 1) limits.nodes = shape.nodes;
    return limits;
  }
  // Or unsets them.
  void set_environment(bool set) const {
    std::istringstream words(environment + " SLOT_BYTES=" + std::to_string(slot_bytes) +
                             (limits().nodes ? " NODE_RANKS=" + shape.name : ""));
    for (std::string word; words >> word;) {
      const std::size_t end = word.find('=');
      const std::string variable = "CARILLON_" + word.substr(0, end);
      set ? setenv(variable.c_str(), word.substr(end + 1).c_str(), 1) : unsetenv(variable.c_str());
    }
  }
};

// A team's schedules, which verify has accepted, and as the engine has them.
struct Accepted {
  Case problem;
  std::vector<Schedule> schedules;
  std::vector<std::shared_ptr<const Plan>> plans;

  [[nodiscard]] std::string text() const {
    const Shared& s = problem.shared;
    return std::string(collective_name(s.collective)) + " root=" + std::to_string(s.root) +
           " count=" + std::to_string(s.count) + (problem.in_place ? " in place\n" : "\n") +
           to_text(schedules);
  }
};

class Fuzz {
 public:
  Fuzz(const Setting& setting, int teams) : setting_(setting) {
    for (int i = 0; i < teams && !testing::Test::HasFailure(); ++i) write_team();
  }
  [[nodiscard]] const std::vector<Accepted>& accepted() const { return accepted_; }

 private:
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  Case draw_problem() {
    using enum Collective;
    constexpr std::array kWhat = {kBcast, kReduce, kAllreduce, kAllgather};
    const Rank ranks = setting_.shape.ranks();
    const Collective what = kWhat.at(static_cast<std::size_t>(draw(kWhat.size())));
    const int count = draw(draw(2) == 0 ? 12 : setting_.most_count);
    return {{what, ranks, draw(ranks), count, kElement, draw(2) == 0}, draw(3) == 0};
  }

  void write_team() {
    const Case problem = draw_problem();
    const auto schedules =
        RandomTeam(problem, setting_.limits(), setting_.sends, random_()).write();
    try_team({problem, schedules, {}});
    const Rank rank = draw(problem.shared.ranks);
    const Schedule& own = schedules[static_cast<std::size_t>(rank)];
    const std::vector<Mutant> mutants = Mutator(rank, 0, to_text(own)).all();
    constexpr int kTried = 20;
    for (int i = 0; i < kTried && !mutants.empty(); ++i) {
      const Mutant& mutant =
          mutants[static_cast<std::size_t>(draw(static_cast<int>(mutants.size())))];
      const auto damaged = parse_schedule(text_of(mutant.lines));
      if (!damaged.ok()) continue;
      Accepted team{problem, schedules, {}};
      team.schedules[static_cast<std::size_t>(rank)] = damaged.value();
      try_team(std::move(team));
    }
  }

  void try_team(Accepted team) {
    TeamCall call{.shared = team.problem.shared, .limits = setting_.limits(), .locals = {}};
    for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
      call.locals.push_back({.in_place = team.problem.in_place_at(rank), .tables = {}});
    }
    if (!verifier_.verify(call, team.schedules).ok()) return;
    interpret_team(call, team);
    for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
      const carillon::Call own{.shared = call.shared,
                               .local = call.local(rank),
                               .rank = rank,
                               .limits = call.limits,
                               .params = {.two_sided = setting_.sends}};
      auto plan = lower(team.schedules[static_cast<std::size_t>(rank)], own);
      if (!plan.ok()) return;  // the engine says that it cannot run such a one
      team.plans.push_back(std::make_shared<const Plan>(std::move(plan.value())));
    }
    accepted_.push_back(std::move(team));
  }
  static void interpret_team(const TeamCall& call, const Accepted& team) {
    std::vector<Bytes> inputs, expected;
    for (Rank rank = 0; rank < call.shared.ranks; ++rank) {
      inputs.push_back(input_of(team.problem, rank));
      expected.push_back(expected_output(team.problem, rank));
    }
    for (const std::uint64_t seed : {0, 1, 2}) {
      const RunOptions options{.seed = seed, .schedules = team.schedules};
      const auto run = interpret(call, {}, inputs, operator_of(call.shared), {.run = options});
      ASSERT_TRUE(run.ok()) << run.status().to_string() << "\n" << team.text();
      ASSERT_TRUE(run.value().outputs == expected) << team.text();
    }
  }

  const Setting& setting_;
  std::mt19937_64 random_{1};
  Verifier verifier_;
  std::vector<Accepted> accepted_;
};

void affine(void* /*arg*/, const void* left, void* right, std::size_t count) {
  apply_affine(left, right, count);
}

// What the rank's part of it came to: empty if all is right.
std::string run_team(crl_team_h team, carillon::Run& run, const Accepted& one, std::byte* memory) {
  const Rank rank = crl_team_rank(team);
  const Bytes in = input_of(one.problem, rank), expected = expected_output(one.problem, rank);
  const bool in_place = one.problem.in_place_at(rank);
  const std::int64_t shift = in_place ? in_place_shift(one.problem.shared, rank) : 0;
  const std::size_t in_end = in_place ? static_cast<std::size_t>(shift) + in.size() : 0;
  constexpr std::size_t kGuard = 64;
  const std::span out(memory, std::max(expected.size(), in_end) + kGuard);
  std::byte* const input = in_place ? memory + shift : memory + out.size();
  std::ranges::fill(out, kUntouched);
  std::ranges::copy(in, input);
  Binding binding{.input = input, .output = memory, .reduction = {}, .element_bytes = kElement};
  binding.reduction.kernel = find_kernel(CRL_SUM, CRL_UINT64);
  if (!one.problem.shared.commutative) binding.reduction = {.user = affine};
  run.prepare(*team->team, binding);
  run.set_plan(one.plans[static_cast<std::size_t>(rank)]);
  team->context->engine->run_to_end(run);
  if (!run.status().ok()) return run.status().to_string();
  if (!std::ranges::equal(expected, out.first(expected.size()))) return "wrong bytes";
  const auto is_touched = [](std::byte byte) { return byte != kUntouched; };
  if (std::ranges::any_of(out.last(kGuard), is_touched)) return "wrote behind the output";
  const bool changed = !in_place && !std::ranges::equal(in, std::span(input, in.size()));
  return changed ? "changed the input" : "";
}

void run_rank(const Setting& setting, const std::vector<Accepted>& teams, crl_context_h context,
              crl_team_h team, std::atomic<std::size_t>& done) {
  expect_ok(settle(team));
  const Limits& limits = team->team->limits();
  EXPECT_EQ(limits.slot_bytes, setting.slot_bytes);
  EXPECT_EQ(limits.gather_entries, setting.gather_entries);
  constexpr std::size_t kRoom = 8 << 20;
  auto* const memory = static_cast<std::byte*>(crl_alloc(context, kRoom));
  std::vector<std::byte> own(kRoom);
  carillon::Run run;
  for (const Accepted& one : teams) {
    const std::string wrong = run_team(team, run, one, done % 2 == 0 ? memory : own.data());
    ASSERT_EQ(wrong, "") << "rank " << crl_team_rank(team) << " of " << one.text();
    ++done;
  }
}

class ScheduleFuzz : public testing::TestWithParam<Setting> {};

TEST_P(ScheduleFuzz, WhatIsAcceptedIsDone) {
  const Setting& setting = GetParam();
  const char* const asked = getenv("CARILLON_TEST_FUZZ_TEAMS");
  const Fuzz fuzz(setting, asked == nullptr ? 60 : std::stoi(asked));
  if (HasFailure()) return;
  ASSERT_GT(fuzz.accepted().size(), 100U);
  setting.set_environment(true);
  const Rank ranks = setting.shape.ranks();
  constexpr std::size_t kBytes = 4096;
  void* const shared =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const done = static_cast<std::atomic<std::size_t>*>(shared);  // by rank
  Meeting world(ranks), members(ranks);
  const auto exits = run_processes(
      ranks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank);
        crl_team_h team = make_team(context, members.oob(rank));
        run_rank(setting, fuzz.accepted(), context, team, done[rank]);
        if (HasFailure()) std::_Exit(1);
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      60);
  for (std::size_t rank = 0; rank < exits.size(); ++rank) {
    if (exits[rank] >= 0) continue;
    ADD_FAILURE()
        << "rank " << rank << " ended by " << exits[rank] << " (-14: it hung) in "
        << fuzz.accepted()[std::min(done[rank].load(), fuzz.accepted().size() - 1)].text();
  }
  expect_all_ok(exits);
  munmap(shared, kBytes);
  setting.set_environment(false);
}

const std::string kLists = " GATHER_ENTRIES=3 GATHER_BYTES=1";

INSTANTIATE_TEST_SUITE_P(
    Settings, ScheduleFuzz,
    testing::Values(
        Setting{"copied", blocked({3}), "LEND_BYTES=0"},
        Setting{"lent", blocked({3}), "LEND_BYTES=64"},
        Setting{"uncached", blocked({3}), "LEND_BYTES=0 UNCACHED_BYTES=64"},
        Setting{"long", blocked({3}), "LEND_BYTES=0", 65536, 4000},
        Setting{"crowded", blocked({3}), "LEND_BYTES=0 CROWDED=1", 262144, 40000},
        Setting{"nodes", blocked({2, 1}), "FETCH_BYTES=0 GATHER_ENTRIES=0"},
        Setting{"fetched", blocked({2, 1}), "FETCH_BYTES=64 GATHER_ENTRIES=0"},
        Setting{"gathered", blocked({1, 1, 1}), "FETCH_BYTES=0" + kLists, 1024, 300, 3},
        Setting{"placed", blocked({1, 2}), "PLACE_BYTES=1" + kLists, 1024, 300, 3, true},
        Setting{"all", blocked({1, 2}), "LEND_BYTES=64 FETCH_BYTES=64" + kLists, 4096, 2000, 3}),
    [](const auto& setting) { return setting.param.name; });

}  // namespace
}  // namespace carillon::test
