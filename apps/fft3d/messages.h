// SPDX-License-Identifier: Apache-2.0
//
// What a rank sends to whom, and receives, when the points go from one decomposition to another,
// slice by slice.
#ifndef FFT3D_MESSAGES_H
#define FFT3D_MESSAGES_H

#include <vector>

#include "decomposition.h"

namespace fft3d {

// To each member, or from each.
struct Messages {
  std::vector<Box> boxes;
  std::vector<int> counts, begins;  // in points, from the slice's first
  long first = 0;                   // of the slice, in the buffer
};

struct Slice {
  Range range;  // of the axis that the exchange leaves alone
  Messages out, in;
};

// The slices of this rank's exchange, at most so many: the same number on all ranks that exchange
// with each other. None if they have no points.
std::vector<Slice> slices_of(const Decomposition& decomposition, int from, int to, int rank,
                             int slices);

// MPI's counts are ints. The most points that a rank moves in one slice, of any rank.
long largest_slice(const Decomposition& decomposition, int slices);

}  // namespace fft3d

#endif
