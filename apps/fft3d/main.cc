// SPDX-License-Identifier: Apache-2.0
//
// A 3D FFT on many ranks, blocking or overlapped with its own communication. A plain MPI program,
// which knows nothing of carillon:
//
//   mpicxx -std=c++20 -O2 apps/fft3d/*.cc -lfftw3 -lfftw3f -o fft3d
//   mpirun -n 4 ./fft3d 128 --compare --check
//   carillon run -n 4 ./fft3d 128 --compare --check
//
// Exit status: 0, 1 if a check has failed or something is missing, 2 for wrong use.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <type_traits>

#include "measure.h"
#include "options.h"
#include "program_text.h"
#include "report.h"

namespace fft3d {

namespace {

enum Outcome { kGoOn, kAnswered, kWrongUse };

// Rank 0 reads the command line; all get what it says.
Outcome agree_on_options(int argc, char** argv, int rank, int ranks, Options& options) {
  Outcome outcome = kGoOn;
  if (rank == 0) {
    std::string problem = read_options({argv + 1, argv + argc}, options);
    const int fits = options.program_of > 0 ? options.program_of : ranks;
    if (problem.empty() && !options.help) problem = fit_options(fits, options);
    if (!problem.empty()) {
      std::fprintf(stderr, "fft3d: %s (fft3d --help has all options)\n", problem.c_str());
      outcome = kWrongUse;
    } else if (options.help) {
      std::fputs(help_text().c_str(), stdout);
      outcome = kAnswered;
    } else if (options.program_of > 0) {
      std::fputs(program_text(options).c_str(), stdout);
      outcome = kAnswered;
    }
  }
  static_assert(std::is_trivially_copyable_v<Options>);
  MPI_Bcast(&outcome, sizeof outcome, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Bcast(&options, sizeof options, MPI_BYTE, 0, MPI_COMM_WORLD);
  return outcome;
}

int run(const Options& options, int rank) {
  const Result result = measure(options, MPI_COMM_WORLD);
  const bool passed = !result.verdict || result.verdict->passed();
  if (rank == 0) {
    const auto report = options.json ? json_report : text_report;
    std::fputs(report(options, result).c_str(), stdout);
    if (!passed) std::fputs("fft3d: the check has failed\n", stderr);
  }
  return passed ? 0 : 1;
}

}  // namespace

}  // namespace fft3d

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0, status = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  try {
    fft3d::Options options;
    switch (fft3d::agree_on_options(argc, argv, rank, ranks, options)) {
      case fft3d::kGoOn: status = fft3d::run(options, rank); break;
      case fft3d::kAnswered: break;
      case fft3d::kWrongUse: status = 2; break;
    }
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "fft3d: rank %d: not enough memory; use more nodes or fewer points\n",
                 rank);
    MPI_Abort(MPI_COMM_WORLD, 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fft3d: rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
