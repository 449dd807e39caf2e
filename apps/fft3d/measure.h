// SPDX-License-Identifier: Apache-2.0
//
// Runs the transforms, again and again, and says how long they took.
#ifndef FFT3D_MEASURE_H
#define FFT3D_MEASURE_H

#include <mpi.h>

#include <array>
#include <optional>
#include <vector>

#include "check.h"
#include "options.h"
#include "stage.h"

namespace fft3d {

// What is measured in each iteration. kTotal is kForward and kBackward, and is spent in kTransform,
// kPack, kExchange and kUnpack. kAlone: as long takes the exchange if nothing is computed
// meanwhile.
enum Figure {
  kTotal,
  kForward,
  kBackward,
  kTransform,
  kPack,
  kExchange,
  kUnpack,
  kAlone,
  kFigures
};

using Figures = std::array<double, kFigures>;  // in seconds

struct MethodResult {
  Method method;
  Figures slowest_s{};  // of the slowest rank, median over the iterations
  Figures mean_s{};     // mean over the ranks, median over the iterations
  // Where there is an exchange alone to compare with: the share of it that computing hides, and the
  // share that it could, if it is shorter.
  std::optional<double> overlap, overlap_limit;
};

struct Result {
  std::vector<MethodResult> methods;  // blocking before overlapped
  std::optional<double> ratio;        // of the total times, blocking to overlapped: median
  std::optional<Verdict> verdict;
};

// Collective. The times are right on rank 0, the verdict is on all ranks.
Result measure(const Options& options, MPI_Comm world);

}  // namespace fft3d

#endif
