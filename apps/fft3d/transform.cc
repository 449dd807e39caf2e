// SPDX-License-Identifier: Apache-2.0
#include "transform.h"

#include <algorithm>

namespace fft3d {

template <class Real>
Workspace<Real>::Workspace(const Decomposition& decomposition, int rank, bool from_mpi)
    : field_layout_(decomposition.field(rank)) {
  long room = 0;
  for (int whole = 0; whole < 3; ++whole) {
    layouts_[whole] = decomposition.layout(whole, rank);
    room = std::max(room, layouts_[whole].box().volume());
  }
  // Where nothing is exchanged between axes 2 and 1, both are transformed where they are.
  place_[2] = 0;
  place_[1] = layouts_[1] == layouts_[2] ? 0 : 1;
  place_[0] = 1 - place_[1];
  if (!decomposition.complex_field()) {
    field_ = Buffer<Real>(field_layout_.box().volume(), from_mpi);
  }
  for (auto& points : points_) points = Buffer<Complex>(room, from_mpi);
  send_ = Buffer<Complex>(room, from_mpi);
  receive_ = Buffer<Complex>(room, from_mpi);
}

template <class Real>
Arrays<Real> Workspace<Real>::arrays(int whole_axis) {
  return {layouts_[whole_axis], points_[place_[whole_axis]].data(), field_layout_, field_.data()};
}

template <class Real>
Transform<Real>::Transform(const Decomposition& decomposition, const Communicators& communicators,
                           const Method& method, unsigned planner, Workspace<Real>& workspace) {
  const auto add = [&](Direction direction, int from, int to, bool before, bool after) {
    const StageSetup setup{from, to, before, after, direction, method, planner};
    stages(direction).emplace_back(decomposition, communicators, setup, workspace.arrays(from),
                                   workspace.arrays(to), workspace.send(), workspace.receive());
  };
  add(Direction::kForward, 2, 1, true, false);
  add(Direction::kForward, 1, 0, true, true);
  add(Direction::kBackward, 0, 1, true, true);
  add(Direction::kBackward, 1, 2, false, true);
}

template <class Real>
void Transform<Real>::run(Direction direction, Times& times) {
  for (Stage<Real>& stage : stages(direction)) stage.run(times);
}

template <class Real>
void Transform<Real>::exchange_alone(Direction direction) {
  for (Stage<Real>& stage : stages(direction)) stage.exchange_alone();
}

template class Workspace<float>;
template class Workspace<double>;
template class Transform<float>;
template class Transform<double>;

}  // namespace fft3d
