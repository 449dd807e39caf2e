// SPDX-License-Identifier: Apache-2.0
//
// The measuring half of `carillon bench`: starts the bench program under its MPI and collects its
// rows.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mpi/own_program.h"
#include "support/json.h"

namespace carillon::cli {

struct BenchJob {
  std::vector<std::string> collectives;
  std::vector<std::int64_t> sizes;
  int ranks = 2;
  int iterations = 0;
  double seconds = 0.5;
  std::string buffer = "private";  ///< private, heap or shared
  bool fresh = false;              ///< the input is written anew before every call
  bool together = false;           ///< ranks begin at an agreed time, not after a barrier
  bool counter = false;
  bool bare = false;  ///< beside it a loop without a library, of two ranks
  bool native_best = false;
};

using BenchRow = Json;

template <typename List>
std::string comma_list(const List& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

/// Runs a command that prints rows (JSON objects with "collective", a line each) and returns them;
/// `progress` gets each as it comes. Fails if it says why it cannot, or ends otherwise than with
/// `expected` rows.
std::vector<BenchRow> collect_rows(const Arguments& command, const Environment& environment,
                                   std::size_t expected,
                                   const std::function<void(const BenchRow&)>& progress);

/// The words of the bench program that say what the job is, those of exec or cluster run that its
/// buffers need, and how many rows come of it.
Arguments arguments_of(const BenchJob& job);
Arguments preloads_of(const BenchJob& job);
std::size_t expected_rows(const BenchJob& job);

/// The rows of the job; `progress` gets each as it comes. Fails if a row is missing: if carillon
/// did not take the calls, or gave another answer, there is nothing to report. With native_best
/// the MPI is measured as it comes and as it can be set, and each row has the best of it:
/// native_us and speedup are of the best, native_default_us as it comes, native_settings says
/// which was best.
std::vector<BenchRow> run_bench(const BenchJob& job, const OwnProgram& program,
                                const std::function<void(const BenchRow&)>& progress);

}  // namespace carillon::cli
