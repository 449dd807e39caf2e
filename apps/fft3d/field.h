// SPDX-License-Identifier: Apache-2.0
//
// The numbers that are transformed: they look random, and depend on the place in the whole grid
// only, so that every rank can say what any rank has. From -1 to 1, of mean 0.
#ifndef FFT3D_FIELD_H
#define FFT3D_FIELD_H

#include <complex>
#include <cstdint>

#include "box.h"

namespace fft3d {

// The n-th number of a sequence (the finalizer of splitmix64).
template <class Real>
Real number(std::uint64_t n) {
  std::uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<Real>(static_cast<double>(x >> 11) * 0x1p-52 - 1.0);
}

inline void set_number(std::uint64_t n, float& value) { value = number<float>(n); }
inline void set_number(std::uint64_t n, double& value) { value = number<double>(n); }
template <class Real>
void set_number(std::uint64_t n, std::complex<Real>& value) {
  value = {number<Real>(2 * n), number<Real>(2 * n + 1)};
}

// Calls visit(offset, n) for each point of an array, n: its place in the whole grid.
template <class Visit>
void for_each_point(const Shape& points, const Layout& layout, const Visit& visit) {
  const Box& box = layout.box();
  for (long i = box.axis[0].begin; i < box.axis[0].end; ++i) {
    for (long j = box.axis[1].begin; j < box.axis[1].end; ++j) {
      for (long k = box.axis[2].begin; k < box.axis[2].end; ++k) {
        const auto n = static_cast<std::uint64_t>((i * points[1] + j) * points[2] + k);
        visit(layout.offset(Shape{i, j, k}), n);
      }
    }
  }
}

template <class Value>
void fill(const Shape& points, const Layout& layout, Value* values) {
  for_each_point(points, layout,
                 [&](long offset, std::uint64_t n) { set_number(n, values[offset]); });
}

}  // namespace fft3d

#endif
