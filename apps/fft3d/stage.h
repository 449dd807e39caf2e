// SPDX-License-Identifier: Apache-2.0
//
// A step of the 3D transform: lines along one axis, the exchange that makes another axis whole,
// lines along that one.
//
// Blocking, one after the other. Overlapped, with S slices of which W = 2 are under way:
//
//   rank         lines 0 | lines 1 | lines' 0 | lines 2 | lines' 1 | lines 3 | lines' 2 | lines' 3
//   network              | slice 0 .........  |
//                                  | slice 1 .........  |
//                                             | ...
//
// lines: of the first axis, and packing; lines': unpacking, and of the second axis. While the rank
// computes there is always a slice for the network to move, from the first one to the last.
#ifndef FFT3D_STAGE_H
#define FFT3D_STAGE_H

#include <optional>
#include <vector>

#include "lines.h"
#include "times.h"
#include "transpose.h"

namespace fft3d {

struct Method {
  bool overlapped = false;
  int slices = 1;  // 1 if blocking
  int window = 2;  // slices under way at once
  int tests = 0;   // after how many pieces of the lines of a slice MPI_Test is called; 0: never
};

struct StageSetup {
  int from, to;                    // axes that are whole before and afterwards
  bool lines_before, lines_after;  // whether these axes are transformed here
  Direction direction;
  Method method;
  unsigned planner;
};

template <class Real>
class Stage {
 public:
  using Complex = std::complex<Real>;

  // The points are in arrays[0] before, arrays[1] afterwards. Ranks that exchange with nobody copy
  // from one to the other; if both are the same array, they have nothing to copy.
  Stage(const Decomposition& decomposition, const Communicators& communicators,
        const StageSetup& setup, const Arrays<Real>& before, const Arrays<Real>& after,
        Complex* send, Complex* receive);

  void run(Times& times);
  // All its exchanges as in run, and nothing else.
  void exchange_alone();

 private:
  void run_blocking(Times& times);
  void run_overlapped(Times& times);
  void run_lines(const std::vector<Lines<Real>>& lines, int slice, Times& times);
  void finish_oldest(Times& times);
  void rearrange(Times& times);

  Method method_;
  Arrays<Real> before_, after_;
  std::optional<Transpose<Real>> transpose_;             // none: it exchanges with nobody
  std::vector<Lines<Real>> lines_before_, lines_after_;  // of each slice; empty: not here
  int slices_ = 0;
  int oldest_ = 0, newest_ = 0;  // slices under way: from oldest_ to newest_ - 1
};

}  // namespace fft3d

#endif
