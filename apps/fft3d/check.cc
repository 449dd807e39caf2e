// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "buffer.h"
#include "field.h"
#include "lines.h"

namespace fft3d {

namespace {

constexpr double kErrorFactor = 4;
constexpr int kTag = 3;

double square(float value) { return static_cast<double>(value) * value; }
double square(double value) { return value * value; }
template <class Real>
double square(const std::complex<Real>& value) {
  return square(value.real()) + square(value.imag());
}

// Not a number is infinitely wrong.
template <class Value>
double distance(const Value& is, const Value& should) {
  const double error = std::sqrt(square(is - should));
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

// The spectrum of the whole field, in the order 0 1 2; made by FFTW's own 3D transform.
template <class Real>
Buffer<std::complex<Real>> whole_spectrum(const Decomposition& decomposition) {
  using Dimension = Fftw<Real>::Dimension;
  const Shape& n = decomposition.points();
  const Layout field_layout(whole_box(n), {0, 1, 2});
  const Layout layout(whole_box(decomposition.spectrum()), {0, 1, 2});
  Buffer<std::complex<Real>> spectrum(layout.box().volume(), false);
  Buffer<Real> field;
  auto* out = reinterpret_cast<Fftw<Real>::Complex*>(spectrum.data());
  Dimension dimensions[3];
  typename Fftw<Real>::Plan plan = nullptr;
  const auto set_dimensions = [&](const Layout& in) {
    for (int axis = 0; axis < 3; ++axis) {
      dimensions[axis] = {n[axis], in.stride(axis), layout.stride(axis)};
    }
  };
  if (decomposition.complex_field()) {
    set_dimensions(layout);
    plan = Fftw<Real>::kComplex(3, dimensions, 0, nullptr, out, out, FFTW_FORWARD, FFTW_ESTIMATE);
    fill(n, layout, spectrum.data());
  } else {
    set_dimensions(field_layout);
    field = Buffer<Real>(field_layout.box().volume(), false);
    plan = Fftw<Real>::kForwardReal(3, dimensions, 0, nullptr, field.data(), out, FFTW_ESTIMATE);
    fill(n, field_layout, field.data());
  }
  if (plan == nullptr) throw std::runtime_error("FFTW has no plan for the whole grid");
  Fftw<Real>::kExecute(plan);
  Fftw<Real>::kDestroy(plan);
  return spectrum;
}

}  // namespace

double error_bound(const Shape& points, double epsilon) {
  const auto all = static_cast<double>(whole_box(points).volume());
  return kErrorFactor * epsilon * (1 + std::log2(all));
}

template <class Real>
Check<Real>::Check(const Decomposition& decomposition, MPI_Comm world)
    : points_(decomposition.points()), world_(world) {
  int rank = 0;
  MPI_Comm_rank(world, &rank);
  const MPI_Datatype type =
      sizeof(Real) == sizeof(float) ? MPI_C_FLOAT_COMPLEX : MPI_C_DOUBLE_COMPLEX;
  field_layout_ = decomposition.field(rank);
  const auto size_of = [&](int which) {
    const long volume = decomposition.box(0, which).volume();
    if (volume > INT_MAX) throw std::runtime_error("a rank's part is too large to be checked");
    return volume;
  };
  spectrum_.resize(size_of(rank));
  if (rank == 0) {
    const Layout whole(whole_box(decomposition.spectrum()), {0, 1, 2});
    const Buffer<Complex> all = whole_spectrum<Real>(decomposition);
    std::vector<Complex> part;
    for (int to = decomposition.ranks() - 1; to >= 0; --to) {
      part.resize(size_of(to));
      const Layout layout = decomposition.layout(0, to);
      copy_box(layout.box(), whole, all.data(), layout, part.data());
      if (to > 0) MPI_Send(part.data(), static_cast<int>(part.size()), type, to, kTag, world);
    }
    spectrum_ = std::move(part);
  } else {
    MPI_Recv(spectrum_.data(), static_cast<int>(spectrum_.size()), type, 0, kTag, world,
             MPI_STATUS_IGNORE);
  }
  double sum = 0;
  for (const Complex& value : spectrum_) sum += square(value);
  spectrum_rms_ = root_mean(sum, static_cast<double>(spectrum_.size()));
  sum = 0;
  for_each_point(points_, field_layout_, [&](long, std::uint64_t n) {
    Complex value;
    set_number(n, value);
    Real real_value = 0;
    set_number(n, real_value);
    sum += decomposition.complex_field() ? square(value) : square(real_value);
  });
  field_rms_ = root_mean(sum, static_cast<double>(field_layout_.box().volume()));
  mine_.bound = error_bound(points_, std::numeric_limits<Real>::epsilon());
}

template <class Real>
double Check<Real>::root_mean(double sum, double values) const {
  double both[2] = {sum, values};
  MPI_Allreduce(MPI_IN_PLACE, both, 2, MPI_DOUBLE, MPI_SUM, world_);
  return std::sqrt(both[0] / both[1]);
}

template <class Real>
void Check<Real>::after_forward(const Complex* spectrum) {
  for (size_t i = 0; i < spectrum_.size(); ++i) {
    const double error = distance(spectrum[i], spectrum_[i]) / spectrum_rms_;
    mine_.forward_error = std::max(mine_.forward_error, error);
  }
}

template <class Real>
template <class Value>
void Check<Real>::after_backward(const Value* field) {
  const Real scale = static_cast<Real>(1) / static_cast<Real>(whole_box(points_).volume());
  for_each_point(points_, field_layout_, [&](long offset, std::uint64_t n) {
    Value should;
    set_number(n, should);
    const double error = distance(field[offset] * scale, should) / field_rms_;
    mine_.backward_error = std::max(mine_.backward_error, error);
  });
}

template <class Real>
Verdict Check<Real>::verdict() const {
  double errors[2] = {mine_.forward_error, mine_.backward_error};
  MPI_Allreduce(MPI_IN_PLACE, errors, 2, MPI_DOUBLE, MPI_MAX, world_);
  return {errors[0], errors[1], mine_.bound};
}

template class Check<float>;
template class Check<double>;
template void Check<float>::after_backward(const float*);
template void Check<float>::after_backward(const std::complex<float>*);
template void Check<double>::after_backward(const double*);
template void Check<double>::after_backward(const std::complex<double>*);

}  // namespace fft3d
