// SPDX-License-Identifier: Apache-2.0
//
// carillon demo: runs a small, unmodified MPI program (examples/collectives.c) with its own MPI
// alone and then with carillon, for each MPI found; compares the answers and the times.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "command.h"
#include "mpi/own_program.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/options.h"
#include "support/stats.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

struct DemoOptions {
  int ranks = 4;
  std::string mpi;
  bool json = false;
};

// A line of the program's output: "allreduce  8 B  1.23 us  0123456789abcdef".
struct Line {
  std::string collective, digest;
  std::int64_t bytes = 0;
  double time_us = 0;
};

std::vector<Line> parse_output(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream input(text);
  for (std::string one; std::getline(input, one);) {
    std::istringstream words(one);
    Line line;
    std::string b, us;
    if (words >> line.collective >> line.bytes >> b >> line.time_us >> us >> line.digest &&
        b == "B" && us == "us") {
      lines.push_back(line);
    }
  }
  return lines;
}

std::vector<Line> run_program_once(const Arguments& command, const Environment& environment) {
  const Captured done = run_program(command, {.environment = environment});
  std::vector<Line> lines = parse_output(done.out);
  if (done.status != 0 || lines.empty()) {
    fail("the program ended with status {} and {} lines of output; the command was: {}",
         done.status, lines.size(), shell_words(command));
  }
  return lines;
}

// What went wrong, or nothing.
std::string compare(const std::vector<Line>& native, const std::vector<Line>& with) {
  if (native.size() != with.size()) return "the outputs have different lengths";
  for (std::size_t i = 0; i < native.size(); ++i) {
    if (native[i].digest != with[i].digest) {
      return fmt::format(
          "{} of {} bytes: the answers differ (a defect of carillon: please report "
          "it)",
          native[i].collective, native[i].bytes);
    }
  }
  return "";
}

Json rows_of(const std::vector<Line>& native, const std::vector<Line>& with) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < native.size() && i < with.size(); ++i) {
    rows.push_back({{"collective", native[i].collective},
                    {"bytes", native[i].bytes},
                    {"native_us", native[i].time_us},
                    {"carillon_us", with[i].time_us},
                    {"speedup", native[i].time_us / with[i].time_us},
                    {"equal", native[i].digest == with[i].digest}});
  }
  return rows;
}

void print(const DemoOptions& options, const OwnProgram& program, const Json& rows) {
  std::printf("%d ranks of %s with %s: its own MPI alone, then with carillon\n\n", options.ranks,
              program.file.filename().c_str(), program.launcher.version.c_str());
  Table table({"collective", ">bytes", ">native us", ">carillon us", ">speed-up", "answers"});
  for (const Json& row : rows) {
    table.add({row["collective"].text(), short_bytes(row["bytes"].integer()),
               short_number(row["native_us"].number()), short_number(row["carillon_us"].number()),
               short_number(row["speedup"].number()),
               row["equal"].truth() ? "equal" : "DIFFERENT"});
  }
  std::printf("%s\n", table.text().c_str());
}

// Answers equal and calls taken?
bool show_one(const DemoOptions& options, const OwnProgram& program, Json* all) {
  const std::vector<Line> native = run_program_once(program.alone(options.ranks, {}), {});
  const StatsFile stats;
  const std::vector<Line> with = run_program_once(program.with_carillon(options.ranks, {}, {}, {}),
                                                  {{"CARILLON_STATS", stats.setting()}});
  const Json rows = rows_of(native, with);
  std::string problem = compare(native, with);
  for (std::size_t i = 0; i < with.size() && problem.empty(); ++i) {
    if (stats.taken(with[i].collective) > 0) continue;
    problem = fmt::format(
        "carillon did not take the calls of {}, so the times say nothing; "
        "carillon run --stats {} says why",
        with[i].collective, program.file.string());
  }
  if (!options.json) print(options, program, rows);
  if (!problem.empty()) std::fprintf(stderr, "carillon: %s\n", problem.c_str());
  all->push_back({{"mpi", names_of(program.abi).name},
                  {"version", program.launcher.version},
                  {"ranks", options.ranks},
                  {"problem", problem},
                  {"results", rows}});
  return problem.empty();
}

int run(const DemoOptions& options) {
  require_settings();
  const std::vector<OwnProgram> programs =
      options.mpi.empty()
          ? own_programs("collectives")
          : std::vector{require_own_program("collectives", abi_from_name(options.mpi))};
  bool good = true;
  Json all = Json::array();
  for (const OwnProgram& program : programs) {
    good = show_one(options, program, &all) && good;
    std::fflush(stdout);
  }
  if (options.json) std::printf("%s\n", Json{{"demo", all}}.dump(2).c_str());
  if (!good) return 1;
  if (!options.json) {
    std::printf(
        "All answers are equal, and carillon took all calls.\n"
        "Your own program: build/bin/carillon run -n %d ./app\n",
        options.ranks);
  }
  return 0;
}

}  // namespace

Action define_demo(Command command) {
  const auto options = std::make_shared<DemoOptions>();
  command.option("-n,--ranks", options->ranks, "number of ranks")
      .in_range(1, kMaxRanksStarted)
      .with_default();
  command.option("--mpi", options->mpi, "openmpi, mpich or mpiabi; default: all that are found");
  command.flag("--json", options->json, "print JSON");
  return [options](const Arguments&) { return run(*options); };
}

}  // namespace carillon::cli
