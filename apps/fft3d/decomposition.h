// SPDX-License-Identifier: Apache-2.0
//
// Which rank has which points when.
//
// The ranks are a grid of P0 x P1; rank r is in row r / P1 and column r % P1. A field of N0 x N1 x
// N2 points has a spectrum of N0 x N1 x M2, M2 = N2 / 2 + 1 for real fields (the other half follows
// by symmetry), M2 = N2 for complex ones. One axis at a time is whole on every rank:
//
//      axis 2 whole           axis 1 whole           axis 0 whole
//    N0/P0 x N1/P1 x M2 --> N0/P0 x N1 x M2/P1 --> N0 x N1/P0 x M2/P1
//          among the P1 ranks       among the P0 ranks
//              of a row                of a column
//
// A slab decomposition is a grid of P x 1: the first step moves nothing. Lengths that do not divide
// make parts that differ by one; with more ranks than points some ranks have none.
#ifndef FFT3D_DECOMPOSITION_H
#define FFT3D_DECOMPOSITION_H

#include <array>
#include <vector>

#include "box.h"

namespace fft3d {

using ProcessGrid = std::array<int, 2>;

// The P0 x P1 = ranks nearest to a square, P0 >= P1.
ProcessGrid squarest_grid(int ranks);

class Decomposition {
 public:
  Decomposition(const Shape& points, bool complex_field, const ProcessGrid& grid);

  const Shape& points() const { return points_; }
  const Shape& spectrum() const { return spectrum_; }
  const ProcessGrid& grid() const { return grid_; }
  bool complex_field() const { return complex_field_; }
  int ranks() const { return grid_[0] * grid_[1]; }

  // The points of the spectrum (before the last axes are transformed: of what becomes it) that a
  // rank has while this axis is whole.
  Box box(int whole_axis, int rank) const;
  // The array that holds them. Axis 0 is the fastest when it is whole: the final order is 1 2 0.
  Layout layout(int whole_axis, int rank) const;
  // The array of the field itself, of N2 points along axis 2.
  Layout field(int rank) const;

  // The ranks that exchange points when axis `from` is whole no more and `to` becomes it.
  std::vector<int> members(int from, int to, int rank) const;

 private:
  Shape points_, spectrum_;
  bool complex_field_;
  ProcessGrid grid_;
};

}  // namespace fft3d

#endif
