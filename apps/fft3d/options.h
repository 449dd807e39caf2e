// SPDX-License-Identifier: Apache-2.0
//
// What the command line says.
#ifndef FFT3D_OPTIONS_H
#define FFT3D_OPTIONS_H

#include <string>
#include <vector>

#include "decomposition.h"

namespace fft3d {

// Plain data: rank 0 reads the command line and sends this to the others.
struct Options {
  Shape points{};              // N0 N1 N2
  bool pencil = false;         // else slabs
  ProcessGrid process_grid{};  // 0 x 0: chosen
  bool complex_field = false;
  bool single_precision = false;
  bool forward = true, backward = true;
  bool overlap = false;  // MPI_Ialltoallv instead of MPI_Alltoallv
  bool compare = false;  // both, in turn
  int slices = 4;
  int window = 2;
  int tests = 0;
  int iterations = 10;
  int warmups = 1;
  bool plain = false;  // nothing but the transforms
  bool alloc_mem = false;
  bool estimate = false;  // FFTW plans without measuring
  bool check = false;
  bool json = false;
  // Nothing is run; printed is the program of so many ranks. 0: not asked for.
  int program_of = 0;
  int line_mflops =
      2000;              // of lines, by 5 N log2 N operations for each, half of that for real ones
  int copy_mbps = 4000;  // of packing and unpacking
  bool help = false;

  bool overlaps() const { return overlap || compare; }
};

// Returns what is wrong with these words, in one line; empty if nothing is.
std::string read_options(const std::vector<std::string>& words, Options& options);

// The same for what depends on the number of ranks; chooses the process grid.
std::string fit_options(int ranks, Options& options);

std::string help_text();

}  // namespace fft3d

#endif
