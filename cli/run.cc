// SPDX-License-Identifier: Apache-2.0
//
// carillon run: finds the program's MPI, its launcher and its interposer, and becomes
//   LAUNCHER -n N carillon exec --mpi NAME PROGRAM ARGS...
// so that only the ranks have the interposer, not the launcher.
#include <sched.h>

#include <cstdio>
#include <memory>
#include <sstream>

#include "command.h"
#include "mpi/launcher.h"
#include "support/failure.h"
#include "support/machine.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

struct LaunchOptions {
  int ranks = 0;
  bool stats = false, json = false, check = false, shared_heap = false;
  bool dry_run = false;
  std::string mpi, trace, record;
  std::string launcher_options;
};

int run(const LaunchOptions& options, const Arguments& program) {
  require_settings();
  refuse_inside_launcher("carillon run");
  require_program(program[0]);
  const Linkage linkage = find_linkage(program, options.mpi);
  require_interposer(linkage.abi);
  if (options.shared_heap) require_shared_heap();
  const Launcher launcher = require_launcher(linkage);
  Arguments rank = {own_path().string(), "exec", "--mpi", std::string(names_of(linkage.abi).name)};
  if (options.stats) rank.emplace_back("--stats");
  if (options.json) rank.emplace_back("--json");
  if (options.check) rank.emplace_back("--check");
  if (options.shared_heap) rank.emplace_back("--shared-heap");
  if (!options.trace.empty()) {
    rank.insert(rank.end(), {"--trace", std::filesystem::absolute(options.trace)});
  }
  if (!options.record.empty()) {
    rank.insert(rank.end(), {"--record", std::filesystem::absolute(options.record)});
  }
  rank.emplace_back("--");
  rank.insert(rank.end(), program.begin(), program.end());
  std::istringstream words(options.launcher_options);
  Arguments extra;
  for (std::string word; words >> word;) extra.push_back(word);
  const int ranks = options.ranks > 0 ? options.ranks : usable_cores();
  const Arguments command = launch_command(launcher, ranks, extra, rank);
  if (options.dry_run) {
    std::printf("%s\n", shell_words(command).c_str());
    return 0;
  }
  if (!options.trace.empty()) require_trace(options.trace);
  if (!options.record.empty()) require_recording(options.record);
  become(command);
}

}  // namespace

Action define_run(Command command) {
  const auto options = std::make_shared<LaunchOptions>();
  command.option("-n,--ranks", options->ranks, "number of ranks; default: one per core")
      .in_range(1, kMaxRanksStarted);
  command.flag("--stats", options->stats, kStatsHelp);
  command.flag("--json", options->json, kStatsJsonHelp);
  command.flag("--check", options->check, kCheckHelp);
  command.flag("--shared-heap", options->shared_heap, kSharedHeapHelp);
  command.option("--trace", options->trace, kTraceHelp);
  command.option("--record", options->record, kRecordHelp);
  command.option("--mpi", options->mpi,
                 "the program's MPI: openmpi, mpich or mpiabi; default: looked up in the program");
  command
      .option("--launcher-options", options->launcher_options,
              "further options for mpirun or mpiexec, e.g. \"--hostfile hosts\"")
      .may_be_empty();
  command.flag("--dry-run", options->dry_run, "print the command instead of running it");
  return [options](const Arguments& program) { return run(*options, program); };
}

}  // namespace carillon::cli
