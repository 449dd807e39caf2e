// SPDX-License-Identifier: Apache-2.0
#include "bench_overlap.h"

#include <cstdio>
#include <utility>

#include "cluster/busy.h"
#include "support/failure.h"
#include "support/json.h"
#include "support/machine.h"
#include "support/options.h"
#include "support/table.h"

namespace carillon::cli {
namespace {

int ranks_of(const OverlapBench& bench) {
  return bench.nodes > 0 ? bench.nodes * bench.ranks_per_node : bench.job.ranks;
}

Arguments command_of(const OverlapBench& bench, const OwnProgram& program) {
  Arguments words = arguments_of(bench.job);
  words.insert(words.end(), {"--overlap", "--tests", std::to_string(bench.tests)});
  const Arguments preloads = preloads_of(bench.job);
  if (bench.nodes == 0) return program.with_carillon(bench.job.ranks, {}, preloads, words);
  Arguments command = {own_path().string(),
                       "cluster",
                       "run",
                       "--nodes",
                       std::to_string(bench.nodes),
                       "--ppn",
                       std::to_string(bench.ranks_per_node),
                       "--mpi",
                       std::string(names_of(program.abi).name)};
  if (!bench.rate.empty()) command.insert(command.end(), {"--rate", bench.rate});
  command.insert(command.end(), preloads.begin(), preloads.end());
  command.insert(command.end(), {"--", program.file.string()});
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::vector<std::pair<std::string, Environment>> settings_of(const OwnProgram& program) {
  std::vector<std::pair<std::string, Environment>> settings = {{"default", {}}};
  if (program.launcher.kind == Launcher::Kind::kHydra) {
    settings.push_back({"progress thread", {{"MPIR_CVAR_ASYNC_PROGRESS", "1"}}});
  }
  return settings;
}

std::string table_of(const std::vector<BenchRow>& rows) {
  Table table({"collective", ">bytes", "by", ">start us", ">alone us", ">computation us",
               ">both us", ">both / longer", ">overlap %", ">cores busy %"});
  for (const BenchRow& row : rows) {
    for (const char* const side : {"native", "carillon"}) {
      const Json& figures = row[side];
      const std::string setting = row["native_settings"].text();
      const std::string by =
          std::string(side) + (setting == "default" ? "" : ", MPI with " + setting);
      table.add(
          {row["collective"].text(), short_bytes(row["bytes"].integer()), by,
           short_number(figures["start_us"].number()), short_number(figures["pure_us"].number()),
           short_number(figures["compute_us"].number()), short_number(figures["total_us"].number()),
           fmt::format("{:.2f}", figures["over_longer"].number()),
           fmt::format("{:.0f}", figures["overlap_percent"].number()),
           fmt::format("{:.0f}", figures["busy_percent"].number())});
    }
  }
  return table.text();
}

void print(const OverlapBench& bench, const OwnProgram& program, const std::vector<BenchRow>& rows,
           const Busy& busy) {
  const int cores = usable_cores();
  const bool oversubscribed = ranks_of(bench) > cores;
  if (bench.json) {
    const Json answer = {
        {"results", rows},
        {"nodes", bench.nodes},
        {"rate", bench.rate},
        {"machine",
         {{"cores", cores}, {"oversubscribed", oversubscribed}, {"busy_percent", busy.percent()}}},
        {"mpi", {{"name", names_of(program.abi).name}, {"version", program.launcher.version}}}};
    std::printf("%s\n", answer.dump(2).c_str());
    return;
  }
  std::printf("%d ranks%s%s, %s, %s buffers; %d cores%s, %.0f %% busy, all programs together\n%s",
              ranks_of(bench),
              bench.nodes > 0 ? fmt::format(" on {} nodes", bench.nodes).c_str() : "",
              bench.rate.empty() ? "" : fmt::format(" with wires of {}", bench.rate).c_str(),
              program.launcher.version.c_str(), bench.job.buffer.c_str(), cores,
              oversubscribed ? ", fewer than ranks" : "", busy.percent(), table_of(rows).c_str());
}

}  // namespace

int run_overlap(const OverlapBench& bench, const OwnProgram& program,
                const std::function<void(const BenchRow&)>& progress) {
  if (ranks_of(bench) < 2) throw Failure("one rank has nothing to overlap; say -n 2", kWrongUse);
  const Busy busy;
  const std::size_t expected = expected_rows(bench.job);
  std::vector<BenchRow> rows;
  for (const auto& [name, environment] : settings_of(program)) {
    for (BenchRow& row :
         collect_rows(command_of(bench, program), environment, expected, progress)) {
      row["native_settings"] = name;
      rows.push_back(std::move(row));
    }
  }
  print(bench, program, rows, busy);
  return 0;
}

}  // namespace carillon::cli
