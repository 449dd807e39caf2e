// SPDX-License-Identifier: Apache-2.0
//
// Published figures of whole programs: kandalla2013's, at sizes that a test has time for, are those
// of the programs one by one, and mistakes in such files are told.
#include "predict/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/embedded.h"
#include "program/text.h"

namespace carillon::predict {
namespace {

using testing::HasSubstr;

std::string text_of_paper() {
  std::string text;
  for (const EmbeddedFile& file : paper_files()) {
    if (file.name == "kandalla2013") text = file.text;
  }
  return text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Paper small_paper() {
  const std::string text =
      replaced(replaced(replaced(text_of_paper(), "ranks = 2048", "ranks = 60"), "ranks = 240",
                        "ranks = 60"),
               "[512, 1024, 2048]", "[17, 96]");
  Result<Paper> paper = parse_paper(replaced(replaced(text, "[1024]", "[17]"), "[2048]", "[17]"),
                                    "small.toml", "small");
  EXPECT_TRUE(paper.ok()) << paper.status().message();
  return paper.ok() ? paper.value() : Paper{};
}

// By a replay of its own.
double total_us(const Paper& paper, const std::string& name, Rank ranks, std::int64_t grid) {
  const machine::Machine machine = machine::load(paper.machine).value();
  const Way* way = nullptr;
  for (const Way& each : paper.ways) {
    if (each.name == name) way = &each;
  }
  if (way == nullptr) return 0;
  const program::Program program = fft3d_program(*paper.fft3d, *way, machine, ranks, grid).value();
  const sim::Replay replay{
      .program = program,
      .nodes = even_nodes(ranks, way->ppn),
      .job_of = [&](const Shared& shared,
                    const std::shared_ptr<const Nodes>& nodes) -> Result<sim::Job> {
        const bool is_barrier = shared.collective == Collective::kBarrier;
        const AlgorithmChoice choice =
            parse_choice(is_barrier ? "barrier.dissemination" : "alltoallv.pairwise").value();
        const Limits limits{.gather_entries = 30, .nodes = nodes};
        const Call call = prepare(*choice.algorithm, {.shared = shared, .limits = limits}).value();
        return sim::Job{.call = call, .locals = {}, .emit = [choice](const Call& part, Builder& b) {
                          emit_prepared(*choice.algorithm, part, b);
                        }};
      },
      .progress = way->progress,
      .gather_entries = 30};
  return static_cast<double>(sim::replay(replay, machine).value().total_ps) / 1e6;
}

TEST(Kandalla2013, FiguresAreOfTheProgramsTheyName) {
  const Paper paper = small_paper();
  std::size_t programs = 0;
  const Result<Reproduction> result =
      reproduce(paper, [&](std::size_t done, std::size_t) { programs = done; });
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result.value().figures.size(), 8U);
  EXPECT_GT(programs, 40U);
  const std::pair<const char*, const char*> ways[] = {{"blocking", "servlet"},
                                                      {"blocking_15", "servlet"},
                                                      {"host", "servlet"},
                                                      {"blocking", "host"}};
  for (std::size_t i = 0; i < 4; ++i) {
    double most = -1e9;
    for (const std::int64_t grid : {17, 96}) {
      const double base = total_us(paper, ways[i].first, 60, grid);
      most = std::max(most, 100 * (1 - total_us(paper, ways[i].second, 60, grid) / base));
    }
    const std::size_t row = i == 0 ? 2 : i + 4;  // between them are single grids
    EXPECT_NEAR(result.value().figures[row].ours, most, 1e-9) << i;
  }
  for (std::size_t i = 0; i < paper.figures.size(); ++i) {
    const Reproduced& row = result.value().figures[i];
    EXPECT_FALSE(row.model);
    EXPECT_EQ(row.ours_min < row.ours && row.ours < row.ours_max, !paper.figures[i].unpublished)
        << paper.figures[i].what;
  }
}

// Whatever a servlet does beside a computation that needs no memory is hidden.
TEST(Kandalla2013, AServletHidesAnExchange) {
  Paper paper = small_paper();
  paper.varied.clear();
  machine::Sheet sheet = machine::load_sheet(paper.machine).value();
  sheet.machine.memory.compute_slowdown_permille = 0;
  const Result<Reproduced> with = reproduce_program(paper, sheet, paper.figures[0], nullptr);
  const Result<Reproduced> without = reproduce_program(paper, sheet, paper.figures[1], nullptr);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_GT(with.value().ours, 99);
  EXPECT_LT(without.value().ours, 50);
}

// A rank works at the rates: twice the rates, half the time, of all that is no communication.
TEST(Kandalla2013, ProgramsComputeAtTheirRates) {
  const Paper paper = small_paper();
  const auto compute_ns = [&](double rate) {
    machine::Machine machine = machine::load(paper.machine).value();
    Fft3d fft3d = *paper.fft3d;
    fft3d.line_mflops *= rate;
    machine.memory.copy_byte_fs =
        static_cast<std::int64_t>(static_cast<double>(machine.memory.copy_byte_fs) / rate);
    const program::Program program =
        fft3d_program(fft3d, paper.ways.front(), machine, 8, 64).value();
    std::int64_t sum = 0;
    for (const program::Step& step : program.bodies[program.body_of[3]].steps) {
      if (step.kind == program::StepKind::kCompute) sum += step.value;
    }
    return static_cast<double>(sum);
  };
  EXPECT_GT(compute_ns(1), 0);
  EXPECT_NEAR(compute_ns(2), compute_ns(1) / 2, 8);
}

TEST(Kandalla2013, MistakesAreTold) {
  struct Case {
    std::string from, to, message;
  };
  const Case cases[] = {
      {"slices = 4", "slices = 0", "slices is 0"},
      {"slices = 4", "slices = 4.5", "slices must be a whole number, not 4.5"},
      {"bytes = 65536", "bytes = 65536.5", "bytes must be a whole number, not 65536.5"},
      {"bytes = 65536", "bytes = 65536\nlate_us = 5", "a figure of programs has no late_us"},
      {"line_mflops = {value = 2000", "line_mflops = {value = 9000", "line_mflops: value is 9000"},
      {"line_mflops", "line_rate", "has no line_rate"},
      {"progress = \"servlet\"", "progress = \"magic\"", "caller, thread or servlet"},
      {"alltoallv = \"pairwise\"", "alltoallv = \"pears\"", "alltoallv.pears"},
      {"ours = \"host\"", "ours = \"hoast\"", "no section [ways.hoast]"},
      {"base = \"blocking\"\n", "", "needs base"},
      {"bytes = 65536", "grids = 64", "such a quantity has no grids"},
      {"grids = [512, 1024, 2048]", "grids = [0]", "grids must be a number or a list"},
      {"grids = [512, 1024, 2048]", "bytes = 8", "such a quantity has no bytes"},
      {"quantity = \"overlap\"", "quantity = \"growth\"", "such a quantity has no bytes"},
      {"quantity = \"time_saved\"", "quantity = \"overlaps\"", "growth or overlap"},
      {"[ways.host]",
       "[pairs.a]\ncollective = \"bcast\"\nbase = \"flat\"\nours = \"chain\"\n"
       "[ways.host]",
       "has no pairs"},
  };
  for (const Case& c : cases) {
    const Result<Paper> paper =
        parse_paper(replaced(text_of_paper(), c.from, c.to), "my.toml", "my");
    ASSERT_FALSE(paper.ok()) << c.to;
    EXPECT_THAT(std::string(paper.status().message()), HasSubstr(c.message)) << c.to;
    EXPECT_THAT(std::string(paper.status().message()), testing::StartsWith("my.toml:"));
  }
  Paper paper = small_paper();
  paper.varied = {"network.nothing"};
  EXPECT_THAT(std::string(reproduce(paper).status().message()), HasSubstr("has no range"));
  paper = small_paper();
  paper.ways.back().ppn = 16;  // the servlet's, as they are sorted
  ASSERT_EQ(paper.ways.back().name, "servlet");
  EXPECT_THAT(std::string(reproduce(paper).status().message()), HasSubstr("none for a servlet"));
}

}  // namespace
}  // namespace carillon::predict
