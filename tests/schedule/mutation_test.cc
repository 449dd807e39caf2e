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
#include <set>

#include "algorithms/registry.h"
#include "schedule/interpret.h"
#include "schedule/text.h"
#include "schedule/verify.h"
#include "support/hand_team.h"
#include "support/oracle.h"
#include "support/registry.h"
#include "support/shapes.h"

namespace carillon {
namespace {

using Lines = std::vector<std::string>;

// A damaged schedule: the lines of one rank, and what was done to them.
struct Mutant {
  Rank rank = 0;
  std::string what;
  Lines lines;
};

Lines lines_of(const std::string& text) {
  Lines lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool is_op(const std::string& line) {
  for (const char* const other : {"schedule", "strand", "phase", "}", "learn"}) {
    if (line.starts_with(other)) return false;
  }
  return line.find('{') == std::string::npos;
}

// The mutants of one rank's schedule.
class Mutator {
 public:
  Mutator(Rank rank, const std::string& text) : rank_(rank), lines_(lines_of(text)) {}

  std::vector<Mutant> all() {
    for (std::size_t i = 1; i < lines_.size(); ++i) {
      if (is_op(lines_[i])) damage_op(i);
      if (!lines_[i].starts_with("phase")) change_numbers(i);
    }
    reorder_strands();
    return std::move(mutants_);
  }

 private:
  void add(std::string what, Lines lines) {
    mutants_.push_back({rank_, std::move(what), std::move(lines)});
  }
  void add_line(const std::string& what, std::size_t at, std::string line) {
    Lines lines = lines_;
    lines[at] = std::move(line);
    add(what + " '" + lines_[at] + "' to '" + lines[at] + "'", lines);
  }

  void damage_op(std::size_t i) {
    Lines lines = lines_;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    add("drop '" + lines_[i] + "'", lines);
    lines = lines_;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(i), lines_[i]);
    add("duplicate '" + lines_[i] + "'", lines);
    for (std::size_t j = i + 1; j < std::min(i + 4, lines_.size()); ++j) {
      lines = lines_;
      std::swap(lines[i], lines[j]);
      add("swap '" + lines_[i] + "' and '" + lines_[j] + "'", lines);
    }
    swap_buffers(i);
    change_spaces(i);
  }

  // The last two buffers of a list: operands of a reduce, order of a gather list.
  void swap_buffers(std::size_t i) {
    const std::string& line = lines_[i];
    const std::size_t end = line.rfind("] ");
    if (end == std::string::npos) return;
    const std::size_t begin = std::max(line.find("= ") + 1, line.rfind("] ", end - 1) + 1);
    const std::size_t start = line.find_first_not_of(' ', std::min(begin, end));
    if (line.find("= ", start) != std::string::npos) return;
    const std::string left = line.substr(start, end + 1 - start);
    const std::string right = line.substr(end + 2);
    if (left.find(' ') == std::string::npos || line.find("reduce") != std::string::npos) {
      add_line("swap operands", i, line.substr(0, start) + right + " " + left);
    }
  }

  void change_spaces(std::size_t i) {
    const std::pair<std::string, std::string> changes[] = {
        {"input[", "output["}, {"output[", "scratch["}, {"scratch[", "output["}};
    for (const auto& [from, to] : changes) {
      for (auto at = lines_[i].find(from); at != std::string::npos;
           at = lines_[i].find(from, at + 1)) {
        std::string line = lines_[i];
        add_line("space", i, line.replace(at, from.size(), to));
      }
    }
  }

  // Every number of the line: offsets, lengths, strides, peers, message indices, loop counts.
  void change_numbers(std::size_t i) {
    const std::string& line = lines_[i];
    for (std::size_t at = 0; at < line.size(); ++at) {
      if (std::isdigit(static_cast<unsigned char>(line[at])) == 0) continue;
      std::size_t end = at;
      while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
      const long value = std::stol(line.substr(at, end - at));
      std::set<long> values{value + 1, value - 1, value + 8, value - 8, 2 * value, 0};
      values.erase(value);
      for (const long changed : values) {
        if (changed < 0) continue;
        add_line("change", i, line.substr(0, at) + std::to_string(changed) + line.substr(end));
      }
      at = end;
    }
  }

  void reorder_strands() {
    const auto strand = std::find(lines_.begin(), lines_.end(), "strand");
    if (strand == lines_.end()) return;
    Lines merged = lines_;
    merged.erase(merged.begin() + (strand - lines_.begin()));
    add("merge strands", merged);
    Lines turned{lines_.front()};
    turned.insert(turned.end(), strand + 1, lines_.end());
    turned.insert(turned.end(), lines_.begin() + 1, strand);
    add("run strands one after the other", turned);
  }

  Rank rank_;
  Lines lines_;
  std::vector<Mutant> mutants_;
};

// One valid team, whose ranks' schedules are damaged one at a time.
class Subject {
 public:
  Subject(std::string name, const test::Case& problem, const Limits& limits)
      : name_(std::move(name)), problem_(problem) {
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

  template <typename EmitOne>
  void emit_with(EmitOne emit_one) {
    for (Rank rank = 0; rank < ranks(); ++rank) {
      Result<Schedule> schedule = emit_one(Call{.shared = call_.shared,
                                                .local = call_.local(rank),
                                                .rank = rank,
                                                .limits = call_.limits,
                                                .params = params,
                                                .stage = 0,
                                                .learned = {}});
      ASSERT_TRUE(schedule.ok()) << name_ << ": " << schedule.status().to_string();
      schedules_.push_back(std::move(schedule.value()));
    }
  }

  [[nodiscard]] Rank ranks() const { return problem_.shared.ranks; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Schedule& schedule(Rank rank) const {
    return schedules_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Emit emit_with_replaced(Rank rank, const Schedule& schedule) const {
    return [this, rank, schedule](Rank asked, std::int32_t,
                                  std::span<const std::int64_t>) -> Result<Schedule> {
      return asked == rank ? schedule : schedules_[static_cast<std::size_t>(asked)];
    };
  }
  [[nodiscard]] Report verify_with(const Emit& emit) const { return verify(call_, emit); }

  // The oracle: true if every run yields what the collective must. *runs: each came to its end.
  [[nodiscard]] bool runs_right(const Emit& emit, bool* runs) const {
    const auto apply = call_.shared.commutative ? test::apply_sum : test::apply_affine;
    const Operator reduce = [&](std::byte* dst, const std::byte* left, const std::byte* right,
                                std::int64_t bytes) {
      Bytes result(right, right + bytes);
      apply(left, result.data(), result.size() / 8);
      std::memcpy(dst, result.data(), result.size());
    };
    for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
      const std::byte fill = seed % 2 == 0 ? test::kUntouched : std::byte{0x11};
      const auto run =
          interpret(call_, emit, inputs_, reduce, {.run = {.seed = seed}, .fill = fill});
      *runs = run.ok();
      if (!run.ok()) return false;
      for (std::size_t rank = 0; rank < expected_.size(); ++rank) {
        // Bytes between the blocks keep what was there: known for one of the fills.
        if (fill == test::kUntouched && run.value().outputs[rank] != expected_[rank]) return false;
        if (!agrees_where_written(run.value().outputs[rank], expected_[rank])) return false;
      }
    }
    return call_.shared.collective != Collective::kBarrier || holds_back(emit);
  }

  Params params = {};

 private:
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
  TeamCall call_;
  std::vector<test::OwnedTables> tables_;
  std::vector<Bytes> inputs_, expected_;
  std::vector<Schedule> schedules_;
};

// Over all subjects of a test.
struct Tally {
  int mutants = 0;     // that parse and differ from the original
  int killed = 0;      // change meaning and are rejected
  int by_value = 0;    // of these: runs to the end, but on wrong values
  int survived = 0;    // change meaning and are accepted: a defect of verify
  int equivalent = 0;  // do not change meaning, accepted
  int strict = 0;      // do not change meaning, but rejected

  ~Tally() {
    std::printf(
        "%d mutants: %d change meaning, of which %d are killed (%.2f %%; %d that run to "
        "the end); %d equivalent, of which %d are rejected nevertheless\n",
        mutants, killed + survived, killed, 100.0 * killed / std::max(killed + survived, 1),
        by_value, equivalent + strict, strict);
  }
};

void judge(const Subject& subject, const Mutant& mutant, Tally* tally) {
  const Result<Schedule> schedule = parse_schedule(text_of(mutant.lines));
  if (!schedule.ok() || schedule.value() == subject.schedule(mutant.rank)) return;
  ++tally->mutants;
  const Emit emit = subject.emit_with_replaced(mutant.rank, schedule.value());
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
                << text_of(mutant.lines);
}

void judge_all(const Subject& subject, Tally* tally) {
  const Emit valid = subject.emit_with_replaced(0, subject.schedule(0));
  const Report report = subject.verify_with(valid);
  ASSERT_TRUE(report.ok()) << subject.name() << ": " << report.status.to_string();
  bool runs = true;
  ASSERT_TRUE(subject.runs_right(valid, &runs)) << subject.name();
  for (Rank rank = 0; rank < subject.ranks(); ++rank) {
    const std::string text = to_text(subject.schedule(rank));
    ASSERT_EQ(parse_schedule(text).value(), subject.schedule(rank)) << text;
    for (const Mutant& mutant : Mutator(rank, text).all()) {
      judge(subject, mutant, tally);
      if (tally->survived > 5) return;
    }
  }
}

class Mutation : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Mutation, OfAnAlgorithm) {
  const Algorithm& algorithm = *GetParam();
  Tally tally;
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
      Limits limits{.slot_bytes = 24, .inline_bytes = 8};
      if (algorithm.has_levels() || algorithm.traits.multicast || algorithm.traits.in_switch)
        limits.nodes = test::blocked({3, 2}).nodes;
      Subject subject(name, {shared, in_place}, limits);
      subject.emit_with([&](const Call& call) { return emit(algorithm, call); });
      judge_all(subject, &tally);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, Mutation, testing::ValuesIn(test::one_stage_algorithms()),
                         test::name_of_algorithm);

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
  Tally tally;
  for (const std::string_view text : texts) {
    Subject subject("hand-written bcast", {{Collective::kBcast, 3, 0, 3, 8, true}, false},
                    {.slot_bytes = 24, .inline_bytes = 8});
    const Emit emit = test::emit_text(text);
    subject.emit_with([&](const Call& call) { return emit(call.rank, 0, {}); });
    judge_all(subject, &tally);
  }
}

}  // namespace
}  // namespace carillon
