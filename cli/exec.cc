// SPDX-License-Identifier: Apache-2.0
//
// carillon exec: puts the interposer of the program's MPI before all other libraries and becomes
// the program. Writes nothing to stdout.
#include <cstdlib>
#include <memory>

#include "command.h"
#include "mpi/linkage.h"
#include "support/failure.h"
#include "support/options.h"

namespace carillon::cli {
namespace {

struct ExecOptions {
  bool stats = false, json = false, check = false, shared_heap = false;
  std::string mpi, trace, record;
};

void put_first(const std::string& library) {
  const char* const before = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe)
  const bool any = before != nullptr && *before != '\0';
  setenv("LD_PRELOAD", (any ? library + ":" + before : library).c_str(), 1);
}

// Rank 0 of its launcher, as far as that says; one voice is enough.
bool is_first_rank() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* const rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (rank != nullptr) return std::string(rank) == "0";
  }
  return true;
}

int run(const ExecOptions& options, const Arguments& program) {
  const bool first_rank = is_first_rank();
  require_settings(first_rank);
  if (first_rank) warn_of_unknown_settings();
  require_program(program[0]);
  const Abi abi = options.mpi.empty() ? find_linkage(program).abi : abi_from_name(options.mpi);
  if (options.shared_heap) put_first(require_shared_heap().string());
  put_first(require_interposer(abi).string());
  if (options.stats || options.json) setenv("CARILLON_STATS", options.json ? "json" : "1", 1);
  if (options.check) setenv("CARILLON_CHECK", "1", 1);
  if (!options.trace.empty()) setenv("CARILLON_TRACE", options.trace.c_str(), 1);
  if (!options.record.empty()) setenv("CARILLON_RECORD", options.record.c_str(), 1);
  become(program);
}

}  // namespace

Action define_exec(Command command) {
  const auto options = std::make_shared<ExecOptions>();
  command.flag("--stats", options->stats, kStatsHelp);
  command.flag("--json", options->json, kStatsJsonHelp);
  command.flag("--check", options->check, kCheckHelp);
  command.flag("--shared-heap", options->shared_heap, kSharedHeapHelp);
  command.option("--trace", options->trace, kTraceHelp);
  command.option("--record", options->record, kRecordHelp);
  command.option("--mpi", options->mpi,
                 "the program's MPI: openmpi, mpich or mpiabi; default: looked up in the program");
  return [options](const Arguments& program) { return run(*options, program); };
}

}  // namespace carillon::cli
