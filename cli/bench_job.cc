// SPDX-License-Identifier: Apache-2.0
#include "bench_job.h"

#include "mpi/abi.h"
#include "support/failure.h"
#include "support/machine.h"

namespace carillon::cli {
namespace {

// One way to set up an MPI.
struct MpiSetting {
  std::string name;
  Arguments launcher_options;
  Environment environment;
};

std::vector<MpiSetting> settings_of(const BenchJob& job, const Launcher& launcher) {
  std::vector<MpiSetting> settings = {{.name = "default"}};
  if (!job.native_best) return settings;
  const bool oversubscribed = job.ranks > usable_cores();
  if (launcher.kind == Launcher::Kind::kOpenMpi) {
    if (oversubscribed) {
      settings.push_back({"mpi_yield_when_idle=1, unbound",
                          {"--mca", "mpi_yield_when_idle", "1", "--bind-to", "none"},
                          {}});
    } else {
      settings.push_back({"bound to cores", {"--bind-to", "core"}, {}});
    }
  } else if (oversubscribed) {
    settings.push_back({"yielding",
                        {},
                        {{"MPIR_CVAR_POLLS_BEFORE_YIELD", "1"},
                         {"MPIR_CVAR_ENABLE_HEAVY_YIELD", "1"},
                         {"I_MPI_THREAD_YIELD", "3"}}});
  } else {
    settings.push_back({"bound to cores", {"-bind-to", "core"}, {}});
  }
  return settings;
}

// Keeps of two measurements of a row what the MPI did best.
void keep_best(BenchRow& best, const BenchRow& other, const std::string& name) {
  if (other["native_us"].number() >= best["native_us"].number()) return;
  const double as_it_comes = best["native_default_us"].number();
  best = other;
  best["native_default_us"] = as_it_comes;
  best["native_settings"] = name;
}

}  // namespace

Arguments arguments_of(const BenchJob& job) {
  Arguments arguments = {"--collectives", comma_list(job.collectives),
                         "--sizes",       comma_list(job.sizes),
                         "--seconds",     fmt::format("{}", job.seconds)};
  if (job.iterations > 0) {
    arguments.insert(arguments.end(), {"--iterations", std::to_string(job.iterations)});
  }
  if (job.counter) arguments.emplace_back("--counter");
  if (job.buffer == "shared") arguments.emplace_back("--shared");
  if (job.fresh) arguments.emplace_back("--fresh");
  if (job.together) arguments.emplace_back("--together");
  if (job.bare) arguments.emplace_back("--bare");
  return arguments;
}

Arguments preloads_of(const BenchJob& job) {
  if (job.buffer != "heap") return {};
  require_shared_heap();
  return {"--shared-heap"};
}

std::size_t expected_rows(const BenchJob& job) {
  std::size_t rows = 0;
  for (const std::string& name : job.collectives) rows += name == "barrier" ? 1 : job.sizes.size();
  return rows;
}

std::vector<BenchRow> collect_rows(const Arguments& command, const Environment& environment,
                                   std::size_t expected,
                                   const std::function<void(const BenchRow&)>& progress) {
  std::vector<BenchRow> rows;
  RunOptions options;
  options.environment = environment;
  std::string error;
  options.line = [&](std::string_view line) {
    BenchRow row = BenchRow::parse(line);
    if (row.is_object() && row.contains("error")) error = row["error"].text();
    if (!row.is_object() || !row.contains("collective")) return;  // the MPI's own words
    progress(row);
    rows.push_back(std::move(row));
  };
  const int status = run_program(command, options).status;
  if (!error.empty()) throw Failure(error);
  if (status != 0) {
    fail("the measurement ended with status {}; its reason stands above. The command was: {}",
         status, shell_words(command));
  }
  if (rows.size() != expected) {
    fail("{} of {} rows came from the measurement; the command was: {}", rows.size(), expected,
         shell_words(command));
  }
  return rows;
}

std::vector<BenchRow> run_bench(const BenchJob& job, const OwnProgram& program,
                                const std::function<void(const BenchRow&)>& progress) {
  std::vector<BenchRow> rows;
  for (const MpiSetting& setting : settings_of(job, program.launcher)) {
    std::vector<BenchRow> more =
        collect_rows(program.with_carillon(job.ranks, setting.launcher_options, preloads_of(job),
                                           arguments_of(job)),
                     setting.environment, expected_rows(job), progress);
    if (!job.native_best) return more;
    if (rows.empty()) {
      rows = std::move(more);
      for (BenchRow& row : rows) {
        row["native_default_us"] = row["native_us"].number();
        row["native_settings"] = setting.name;
      }
      continue;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) keep_best(rows[i], more[i], setting.name);
  }
  return rows;
}

}  // namespace carillon::cli
