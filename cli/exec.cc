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

struct Options {
  bool stats = false;
  std::string mpi;
};

void put_first(const std::string& library) {
  const char* const before = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe)
  const bool any = before != nullptr && *before != '\0';
  setenv("LD_PRELOAD", (any ? library + ":" + before : library).c_str(), 1);
}

int run(const Options& options, const Arguments& program) {
  require_settings();
  require_program(program[0]);
  const Abi abi = options.mpi.empty() ? find_linkage(program).abi : abi_from_name(options.mpi);
  put_first(require_interposer(abi).string());
  if (options.stats) setenv("CARILLON_STATS", "1", 1);
  become(program);
}

}  // namespace

Action define_exec(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  app.add_flag("--stats", options->stats,
               "say at the end which calls carillon took, which it left to the MPI, and why");
  app.add_option("--mpi", options->mpi,
                 "the program's MPI: openmpi, mpich or mpiabi; default: looked up in the program");
  return [options](const Arguments& program) { return run(*options, program); };
}

}  // namespace carillon::cli
