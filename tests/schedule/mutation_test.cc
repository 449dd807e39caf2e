// SPDX-License-Identifier: Apache-2.0
//
// The test of the verifier: valid schedules are damaged in small ways (mutants), and each mutant
// that changes meaning must be rejected. Whether it does is decided by an independent oracle: the
// interpreter on real bytes, in several orders of execution, with different initial memory,
// against the outputs that the definition of the collective demands. Mutants that pass it (an
// operand swap under a commutative operator, two independent ops in another order, ...) count as
// equivalent; verify may reject or accept them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "algorithms/registry.h"
#include "schedule/interpret.h"
#include "schedule/text.h"
#include "schedule/verify.h"
#include "support/hand_team.h"
#include "support/mutator.h"
#include "support/oracle.h"
#include "support/registry.h"
#include "support/shapes.h"
#include "support/turn.h"

namespace carillon {
namespace {

using test::Lines;
using test::Mutant;
using test::Mutator;

using EmitOne = std::function<Result<Schedule>(const Call&)>;

// One valid team, whose ranks' schedules are damaged one at a time.
class Subject {
 public:
  Subject(std::string name, const test::Case& problem, const Limits& limits, EmitOne emit_one,
          const Params& params = {})
      : name_(std::move(name)), problem_(problem), params_(params), emit_one_(std::move(emit_one)) {
    call_.shared = problem.shared;
    call_.limits = limits;
    for (Rank rank = 0; rank < ranks(); ++rank) tables_.emplace_back(problem, rank);
    for (Rank rank = 0; rank < ranks(); ++rank) {
      call_.locals.push_back(
          {problem.in_place_at(rank), tables_[static_cast<std::size_t>(rank)].view()});
      inputs_.push_back(test::input_of(problem, rank));
      expected_.push_back(test::expected_output(problem, rank));
    }
  }
  Subject(const Subject&) = delete;

  // Takes down what each rank does in each stage of the valid run.
  void take_stages() {
    stages_.assign(static_cast<std::size_t>(ranks()), {});
    bool runs = true;
    const Emit recorder = [&](Rank rank, std::int32_t stage,
                              std::span<const std::int64_t> learned) -> Result<Schedule> {
      Result<Schedule> schedule = emit_one_(call_of(rank, stage, learned));
      if (schedule.ok()) {
        const std::vector<std::int64_t> values(learned.begin(), learned.end());
        stages_[static_cast<std::size_t>(rank)].push_back({values, schedule.value()});
      }
      return schedule;
    };
    ASSERT_TRUE(run_is_right(recorder, 0, &runs)) << name_;
  }

  [[nodiscard]] Rank ranks() const { return problem_.shared.ranks; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int32_t stages(Rank rank) const {
    return static_cast<std::int32_t>(stages_[static_cast<std::size_t>(rank)].size());
  }
  [[nodiscard]] const Schedule& schedule(Rank rank, std::int32_t stage) const {
    return stage_of(rank, stage).schedule;
  }
  [[nodiscard]] Emit emit_with_replaced(Rank rank, std::int32_t stage,
                                        const Schedule& schedule) const {
    return
        [this, rank, stage, schedule](Rank asked, std::int32_t asked_stage,
                                      std::span<const std::int64_t> learned) -> Result<Schedule> {
          if (asked == rank && asked_stage == stage) return schedule;
          if (asked_stage >= stages(asked)) return Status(Code::kMismatch, "one stage too many");
          const Stage& valid = stage_of(asked, asked_stage);
          if (std::ranges::equal(learned, valid.learned)) return valid.schedule;
          if (!plausible(learned, valid.learned))
            return Status(Code::kMismatch, "learned nonsense");
          return emit_one_(call_of(asked, asked_stage, learned));
        };
  }
  [[nodiscard]] Report verify_with(const Emit& emit) const { return verify(call_, emit); }

  // The oracle: true if every run yields what the collective must. *runs: each came to its end.
  [[nodiscard]] bool runs_right(const Emit& emit, bool* runs) const {
    for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
      if (!run_is_right(emit, seed, runs)) return false;
    }
    return call_.shared.collective != Collective::kBarrier || holds_back(emit);
  }

 private:
  static constexpr std::int64_t kLongestLearned = 1 << 16;
  struct Stage {
    std::vector<std::int64_t> learned;  // at its beginning
    Schedule schedule;
  };

  [[nodiscard]] const Stage& stage_of(Rank rank, std::int32_t stage) const {
    return stages_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] Call call_of(Rank rank, std::int32_t stage,
                             std::span<const std::int64_t> learned) const {
    return {.shared = call_.shared,
            .local = call_.local(rank),
            .rank = rank,
            .limits = call_.limits,
            .params = params_,
            .stage = stage,
            .learned = learned};
  }

  // Algorithms rely on learning as many values as they asked for, and lengths. What is read before
  // it is written is none; verify rejects it, the interpreter goes on.
  static bool plausible(std::span<const std::int64_t> learned,
                        const std::vector<std::int64_t>& valid) {
    return learned.size() == valid.size() && std::ranges::all_of(learned, [](std::int64_t value) {
             return value >= 0 && value <= kLongestLearned;
           });
  }

  [[nodiscard]] bool run_is_right(const Emit& emit, std::uint64_t seed, bool* runs) const {
    const auto apply = call_.shared.commutative ? test::apply_sum : test::apply_affine;
    const Operator reduce = [&](std::byte* dst, const std::byte* left, const std::byte* right,
                                std::int64_t bytes) {
      Bytes result(right, right + bytes);
      apply(left, result.data(), result.size() / 8);
      std::memcpy(dst, result.data(), result.size());
    };
    const std::byte fill = seed % 2 == 0 ? test::kUntouched : std::byte{0x11};
    const auto run = interpret(call_, emit, inputs_, reduce, {.run = {.seed = seed}, .fill = fill});
    *runs = run.ok();
    if (!run.ok()) return false;
    for (std::size_t rank = 0; rank < expected_.size(); ++rank) {
      // Bytes between the blocks keep what was there: known for one of the fills.
      if (fill == test::kUntouched && run.value().outputs[rank] != expected_[rank]) return false;
      if (!agrees_where_written(run.value().outputs[rank], expected_[rank])) return false;
    }
    return true;
  }

  static bool agrees_where_written(const Bytes& got, const Bytes& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] != test::kUntouched && got[i] != expected[i]) return false;
    }
    return true;
  }

  // A barrier: while one rank has not come, nobody leaves.
  [[nodiscard]] bool holds_back(const Emit& emit) const {
    for (Rank missing = 0; missing < ranks(); ++missing) {
      const std::string own = std::to_string(missing);
      const std::string text = "schedule ranks " + std::to_string(ranks()) + " rank " + own +
                               " scratch 0\nwait " + own + " #1000\n";
      const Emit without = [&](Rank rank, std::int32_t stage,
                               std::span<const std::int64_t> learned) -> Result<Schedule> {
        return rank == missing ? parse_schedule(text) : emit(rank, stage, learned);
      };
      const auto run = interpret(call_, without, inputs_, {});
      if (run.ok()) return false;
      for (Rank rank = 0; rank < ranks(); ++rank) {
        const std::string blocked = "\n  rank " + std::to_string(rank) + ",";
        if (run.status().message().find(blocked) == std::string_view::npos) return false;
      }
    }
    return true;
  }

  std::string name_;
  test::Case problem_;
  Params params_;
  TeamCall call_;
  std::vector<test::OwnedTables> tables_;
  std::vector<Bytes> inputs_, expected_;
  EmitOne emit_one_;
  std::vector<std::vector<Stage>> stages_;  // of each rank
};

struct Tally {
  int mutants = 0;     // that parse and differ from the original
  int killed = 0;      // change meaning and are rejected
  int by_value = 0;    // of these: runs to the end, but on wrong values
  int survived = 0;    // change meaning and are accepted: a defect of verify
  int equivalent = 0;  // do not change meaning, accepted
  int strict = 0;      // do not change meaning, but rejected

  void add(const Tally& other) {
    mutants += other.mutants;
    killed += other.killed;
    by_value += other.by_value;
    survived += other.survived;
    equivalent += other.equivalent;
    strict += other.strict;
  }
  void print(const char* of) const {
    std::printf(
        "%s%d mutants: %d change meaning, of which %d are killed (%.2f %%; %d that run to "
        "the end); %d equivalent, of which %d are rejected nevertheless\n",
        of, mutants, killed + survived, killed, 100.0 * killed / std::max(killed + survived, 1),
        by_value, equivalent + strict, strict);
  }
};

// Of all tests, said at the end.
class Total : public testing::Environment {
 public:
  void TearDown() override { tally.print("total: "); }
  Tally tally;
};
Total& total() {
  static auto* const only = new Total;  // which gtest deletes
  return *only;
}
[[maybe_unused]] testing::Environment* const registered =
    testing::AddGlobalTestEnvironment(&total());

// Over all subjects of a test: prints itself, and adds itself to the total.
struct TestTally : Tally {
  TestTally() = default;
  TestTally(const TestTally&) = delete;
  ~TestTally() {
    print("");
    total().tally.add(*this);
  }
};

void judge(const Subject& subject, const Mutant& mutant, Tally* tally) {
  const Result<Schedule> schedule = parse_schedule(test::text_of(mutant.lines));
  if (!schedule.ok() || schedule.value() == subject.schedule(mutant.rank, mutant.stage)) {
    return;
  }
  ++tally->mutants;
  const Emit emit = subject.emit_with_replaced(mutant.rank, mutant.stage, schedule.value());
  const Report report = subject.verify_with(emit);
  bool runs = true;
  const bool right = subject.runs_right(emit, &runs);
  if (!report.ok()) {
    ++(right ? tally->strict : tally->killed);
    if (!right && runs) ++tally->by_value;
    return;
  }
  if (right) {
    ++tally->equivalent;
    return;
  }
  ++tally->survived;
  ADD_FAILURE() << subject.name() << ", rank " << mutant.rank << ": verify accepts " << mutant.what
                << "\n"
                << test::text_of(mutant.lines);
}

constexpr int kShare = 2;  // every second mutant has its turn

void judge_all(Subject& subject, Tally* tally) {
  ASSERT_NO_FATAL_FAILURE(subject.take_stages());
  const Emit valid = subject.emit_with_replaced(0, 0, subject.schedule(0, 0));
  const Report report = subject.verify_with(valid);
  ASSERT_TRUE(report.ok()) << subject.name() << ": " << report.status.to_string();
  bool runs = true;
  ASSERT_TRUE(subject.runs_right(valid, &runs)) << subject.name();
  for (Rank rank = 0; rank < subject.ranks(); ++rank) {
    for (std::int32_t stage = 0; stage < subject.stages(rank); ++stage) {
      const std::string text = to_text(subject.schedule(rank, stage));
      ASSERT_EQ(parse_schedule(text).value(), subject.schedule(rank, stage)) << text;
      for (const Mutant& mutant : test::with_turns(kShare, Mutator(rank, stage, text).all())) {
        judge(subject, mutant, tally);
        if (tally->survived > 5) return;
      }
    }
  }
}

// Slots so small that there are several segments; but alltoallv.bruck_two_phase leaves to others
// what does not fit in one.
Limits limits_for(const Algorithm& algorithm) {
  Limits limits{.slot_bytes = algorithm.traits.stages ? 512 : 24, .inline_bytes = 8};
  const Algorithm::Traits& traits = algorithm.traits;
  if (algorithm.has_levels() || traits.multicast || traits.in_switch || traits.stages) {
    limits.nodes = test::blocked({3, 2}).nodes;
  }
  return limits;
}

class Mutation : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Mutation, OfAnAlgorithm) {
  const Algorithm& algorithm = *GetParam();
  TestTally tally;
  for (const bool commutative : {true, false}) {
    if (!commutative && (algorithm.needs_commutative || !has_reduction(algorithm.collective))) {
      continue;
    }
    for (const bool in_place : {false, true}) {
      const Shared shared{algorithm.collective, 5, has_root(algorithm.collective) ? 1 : 0, 7, 8,
                          commutative};
      bool allowed = false;
      for (Rank rank = 0; rank < 5; ++rank) allowed = allowed || in_place_allowed(shared, rank);
      if (in_place && !allowed) continue;
      const std::string name = std::string(algorithm.id) + (in_place ? " in place" : "") +
                               (commutative ? "" : " non-commutative");
      Subject subject(name, {shared, in_place}, limits_for(algorithm),
                      [&](const Call& call) { return emit(algorithm, call); });
      judge_all(subject, &tally);
      EXPECT_EQ(subject.stages(0) > 1, algorithm.traits.stages) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Mutation, testing::ValuesIn(test::all_algorithms()),
                         test::name_of_algorithm);

// A form that an algorithm takes where it is asked for, or where a node has domains.
struct Form {
  std::string name;
  Params params;
  Limits limits;
};

std::vector<Form> forms_of(const Algorithm& algorithm) {
  const Limits plain = limits_for(algorithm);
  std::vector<Form> forms;
  if (algorithm.has_transfer()) forms.push_back({"two-sided", {.two_sided = true}, plain});
  if (algorithm.traits.lists) {
    Limits lists = plain;
    lists.nodes = test::blocked({2, 2, 1}).nodes;
    lists.gather_entries = 3;
    forms.push_back({"in lists", {.memory = "gather"}, lists});
    forms.push_back({"in selected lists", {.memory = "selective"}, lists});
    forms.push_back({"block by block", {.copy_blocks = true}, lists});
  }
  Limits domains = plain;
  if (domains.nodes) domains.nodes = test::blocked({4, 1}).nodes;
  domains.domains = test::blocked({2, 2, 1}).nodes;
  domains.domain_costs = {.cross_fs = 1'000'000, .write_fs = 0, .hop_ps = 0};
  forms.push_back({"in domains", {}, domains});
  return forms;
}

// The same schedules as without the domains, on the same nodes.
bool is_plain(const Algorithm& algorithm, const Shared& shared, const Form& form) {
  if (!form.limits.domains) return false;
  Limits without = form.limits;
  without.domains = nullptr;
  for (Rank rank = 0; rank < shared.ranks; ++rank) {
    Call call{.shared = shared, .local = {}, .rank = rank, .limits = form.limits};
    const Result<Schedule> with = emit(algorithm, call);
    call.limits = without;
    const Result<Schedule> plain = emit(algorithm, call);
    if (!with.ok() || !plain.ok() || !(with.value() == plain.value())) return false;
  }
  return true;
}

TEST_P(Mutation, OfItsForms) {
  const Algorithm& algorithm = *GetParam();
  if (sends_by_tables(algorithm.collective)) return;  // forms are of the others
  TestTally tally;
  const Shared shared{algorithm.collective, 5, has_root(algorithm.collective) ? 1 : 0, 7, 8, true};
  for (const Form& form : forms_of(algorithm)) {
    if (is_plain(algorithm, shared, form)) continue;
    const std::string name = std::string(algorithm.id) + " " + form.name;
    Subject subject(
        name, {shared, false}, form.limits, [&](const Call& call) { return emit(algorithm, call); },
        form.params);
    judge_all(subject, &tally);
  }
}

// What no algorithm does (yet): messages to all, loops that read a message from before the loop,
// strands that meet by signals to their own rank.
TEST(HandMutation, OfHandWrittenSchedules) {
  const std::string_view texts[] = {
      "schedule ranks 3 rank 0 scratch 0\n"
      "put all #0 input[0+8]\n"
      "put all #1 input[8+8] input[16+8]\n"
      "schedule ranks 3 rank 1 scratch 24\n"
      "wait 0 all #0\n"
      "wait 0 all #1\n"
      "copy scratch[8+16] output[0+8] = slot(0 all #1)[0+16] slot(0 all #0)[0+8]\n"
      "signal 1 #0\n"
      "strand\n"
      "wait 1 #0\n"
      "repeat 2 {\n"
      "copy output[8+8 by 8] = scratch[8+8 by 8]\n"
      "}\n"
      "schedule ranks 3 rank 2 scratch 24\n"
      "wait 0 all #0\n"
      "repeat 1 {\n"
      "copy output[0+8 by 8] = slot(0 all #0)[0+8]\n"
      "}\n"
      "wait 0 all #1\n"
      "repeat 2 {\n"
      "copy output[8+8 by 8] = slot(0 all #1)[0+8 by 8]\n"
      "}\n"};
  TestTally tally;
  for (const std::string_view text : texts) {
    const Emit emit = test::emit_text(text);
    Subject subject("hand-written bcast", {{Collective::kBcast, 3, 0, 3, 8, true}, false},
                    {.slot_bytes = 24, .inline_bytes = 8},
                    [&](const Call& call) { return emit(call.rank, 0, {}); });
    judge_all(subject, &tally);
  }
}

}  // namespace
}  // namespace carillon
