// SPDX-License-Identifier: Apache-2.0
//
// Boxes of grid points, how an array holds the points of one, and copying between two such arrays.
//
// All indices are those of the whole grid. An array of a rank begins at its own box, so that the
// point (i0, i1, i2) has the same name everywhere, wherever it lies.
#ifndef FFT3D_BOX_H
#define FFT3D_BOX_H

#include <array>
#include <complex>

namespace fft3d {

using Shape = std::array<long, 3>;

struct Range {
  long begin = 0, end = 0;
  long length() const { return end - begin; }
};

// Part `which` of `length` points in `parts` parts that differ by one point at most; the longer
// ones come first. There are empty ones if there are more parts than points.
Range part_of(Range whole, int parts, int which);

struct Box {
  std::array<Range, 3> axis;
  long volume() const { return axis[0].length() * axis[1].length() * axis[2].length(); }
  bool empty() const { return volume() == 0; }
  Box with(int which, Range range) const;
};

Box whole_box(const Shape& points);
Box intersection(const Box& left, const Box& right);

// The axes of an array's points from the slowest to the fastest.
using Order = std::array<int, 3>;

class Layout {
 public:
  Layout() = default;
  Layout(const Box& box, const Order& order);

  const Box& box() const { return box_; }
  const Order& order() const { return order_; }
  long stride(int axis) const { return stride_[axis]; }
  int fastest() const { return order_[2]; }
  // Where this point lies in the array.
  long offset(const Shape& point) const;
  // Where the first point of a box that lies within this one's.
  long offset(const Box& box) const;
  bool operator==(const Layout& other) const;

 private:
  Box box_;
  Order order_{0, 1, 2};
  Shape stride_{};
};

// Copies the points of `box` from one array to another. Where both arrays have the same fastest
// axis, in runs; otherwise in tiles, so that what is read and what is written stay in the cache.
template <class Real>
void copy_box(const Box& box, const Layout& from_layout, const std::complex<Real>* from,
              const Layout& to_layout, std::complex<Real>* to);

}  // namespace fft3d

#endif
