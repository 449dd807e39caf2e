// SPDX-License-Identifier: Apache-2.0
#include "decomposition.h"

namespace fft3d {

ProcessGrid squarest_grid(int ranks) {
  int columns = 1;
  for (int divisor = 1; divisor <= ranks / divisor; ++divisor) {
    if (ranks % divisor == 0) columns = divisor;
  }
  return {ranks / columns, columns};
}

Decomposition::Decomposition(const Shape& points, bool complex_field, const ProcessGrid& grid)
    : points_(points), spectrum_(points), complex_field_(complex_field), grid_(grid) {
  if (!complex_field) spectrum_[2] = points[2] / 2 + 1;
}

Box Decomposition::box(int whole_axis, int rank) const {
  const int row = rank / grid_[1], column = rank % grid_[1];
  Box box = whole_box(spectrum_);
  const int by_row = whole_axis == 0 ? 1 : 0, by_column = whole_axis == 2 ? 1 : 2;
  box.axis[by_row] = part_of(box.axis[by_row], grid_[0], row);
  box.axis[by_column] = part_of(box.axis[by_column], grid_[1], column);
  return box;
}

Layout Decomposition::layout(int whole_axis, int rank) const {
  const Order order = whole_axis == 0 ? Order{1, 2, 0} : Order{0, 1, 2};
  return {box(whole_axis, rank), order};
}

Layout Decomposition::field(int rank) const {
  return {box(2, rank).with(2, {0, points_[2]}), {0, 1, 2}};
}

std::vector<int> Decomposition::members(int from, int to, int rank) const {
  const bool along_row = from + to == 3;  // axes 1 and 2
  const int row = rank / grid_[1], column = rank % grid_[1];
  std::vector<int> members(along_row ? grid_[1] : grid_[0]);
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    members[i] = along_row ? row * grid_[1] + i : i * grid_[1] + column;
  }
  return members;
}

}  // namespace fft3d
