// SPDX-License-Identifier: Apache-2.0
#include "lines.h"

#include <stdexcept>

namespace fft3d {

namespace {

// What FFTW is told: along which axis, and over which others to repeat that.
template <class Real>
struct Dimensions {
  using Dimension = Fftw<Real>::Dimension;

  Dimensions(const Layout& in, const Layout& out, const Box& box, int axis, long points) {
    const auto dimension = [&](int which, long length) {
      return Dimension{length, in.stride(which), out.stride(which)};
    };
    line = dimension(axis, points);
    repeated[0] = dimension((axis + 1) % 3, box.axis[(axis + 1) % 3].length());
    repeated[1] = dimension((axis + 2) % 3, box.axis[(axis + 2) % 3].length());
  }

  Dimension line, repeated[2];
};

template <class Real>
Fftw<Real>::Plan plan_complex(const Arrays<Real>& arrays, const Box& box, const LineWork& work) {
  const Layout& layout = arrays.layout;
  const Dimensions<Real> d(layout, layout, box, work.axis, box.axis[work.axis].length());
  auto* points = reinterpret_cast<Fftw<Real>::Complex*>(arrays.points);
  points += layout.offset(box);
  const int sign = work.direction == Direction::kForward ? FFTW_FORWARD : FFTW_BACKWARD;
  return Fftw<Real>::kComplex(1, &d.line, 2, d.repeated, points, points, sign, work.planner);
}

template <class Real>
Fftw<Real>::Plan plan_real(const Arrays<Real>& arrays, const Box& box, const LineWork& work) {
  const Layout &layout = arrays.layout, &field_layout = arrays.field_layout;
  const long length = field_layout.box().axis[work.axis].length();
  auto* points = reinterpret_cast<Fftw<Real>::Complex*>(arrays.points);
  points += layout.offset(box);
  Real* field = arrays.field + field_layout.offset(box);
  if (work.direction == Direction::kForward) {
    const Dimensions<Real> d(field_layout, layout, box, work.axis, length);
    return Fftw<Real>::kForwardReal(1, &d.line, 2, d.repeated, field, points, work.planner);
  }
  const Dimensions<Real> d(layout, field_layout, box, work.axis, length);
  return Fftw<Real>::kBackwardReal(1, &d.line, 2, d.repeated, points, field, work.planner);
}

}  // namespace

template <class Real>
Lines<Real>::Lines(const Arrays<Real>& arrays, const Box& box, const LineWork& work) {
  for (int piece = 0; piece < work.pieces; ++piece) {
    const Box part = box.with(work.cut_axis, part_of(box.axis[work.cut_axis], work.pieces, piece));
    if (part.empty()) continue;
    const bool real = arrays.field != nullptr && work.axis == 2;
    const auto plan = real ? plan_real(arrays, part, work) : plan_complex(arrays, part, work);
    if (plan == nullptr) throw std::runtime_error("FFTW has no plan for a part of the grid");
    plans_.push_back(plan);
  }
}

template <class Real>
Lines<Real>::~Lines() {
  for (auto plan : plans_) Fftw<Real>::kDestroy(plan);
}

template class Lines<float>;
template class Lines<double>;

}  // namespace fft3d
