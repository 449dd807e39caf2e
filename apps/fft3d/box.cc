// SPDX-License-Identifier: Apache-2.0
#include "box.h"

#include <algorithm>

namespace fft3d {

Range part_of(Range whole, int parts, int which) {
  const long each = whole.length() / parts, longer = whole.length() % parts;
  const long begin = whole.begin + which * each + std::min<long>(which, longer);
  return {begin, begin + each + (which < longer ? 1 : 0)};
}

Box Box::with(int which, Range range) const {
  Box result = *this;
  result.axis[which] = range;
  return result;
}

Box whole_box(const Shape& points) {
  return {{Range{0, points[0]}, Range{0, points[1]}, Range{0, points[2]}}};
}

Box intersection(const Box& left, const Box& right) {
  Box result;
  for (int axis = 0; axis < 3; ++axis) {
    const long begin = std::max(left.axis[axis].begin, right.axis[axis].begin);
    const long end = std::min(left.axis[axis].end, right.axis[axis].end);
    result.axis[axis] = {begin, std::max(begin, end)};
  }
  return result;
}

Layout::Layout(const Box& box, const Order& order) : box_(box), order_(order) {
  long stride = 1;
  for (int place = 2; place >= 0; --place) {
    stride_[order[place]] = stride;
    stride *= box.axis[order[place]].length();
  }
}

long Layout::offset(const Shape& point) const {
  long result = 0;
  for (int axis = 0; axis < 3; ++axis) {
    result += (point[axis] - box_.axis[axis].begin) * stride_[axis];
  }
  return result;
}

long Layout::offset(const Box& box) const {
  return offset(Shape{box.axis[0].begin, box.axis[1].begin, box.axis[2].begin});
}

bool Layout::operator==(const Layout& other) const {
  for (int axis = 0; axis < 3; ++axis) {
    const Range &mine = box_.axis[axis], &theirs = other.box_.axis[axis];
    if (mine.begin != theirs.begin || mine.end != theirs.end) return false;
  }
  return order_ == other.order_;
}

namespace {

// What is left of a copy when both arrays' first points are known.
struct Loop {
  long length, from_stride, to_stride;
};

// 32 x 32 points of 16 bytes are 16 KiB: half of a first-level cache.
constexpr long kTile = 32;

template <class Complex>
void copy_tiles(const Loop& rows, const Loop& columns, const Complex* from, Complex* to) {
  for (long row = 0; row < rows.length; row += kTile) {
    const long row_end = std::min(rows.length, row + kTile);
    for (long column = 0; column < columns.length; column += kTile) {
      const long column_end = std::min(columns.length, column + kTile);
      for (long i = row; i < row_end; ++i) {
        const Complex* source = from + i * rows.from_stride;
        Complex* target = to + i * rows.to_stride;
        for (long j = column; j < column_end; ++j) {
          target[j * columns.to_stride] = source[j * columns.from_stride];
        }
      }
    }
  }
}

}  // namespace

template <class Real>
void copy_box(const Box& box, const Layout& from_layout, const std::complex<Real>* from,
              const Layout& to_layout, std::complex<Real>* to) {
  if (box.empty()) return;
  from += from_layout.offset(box);
  to += to_layout.offset(box);
  const auto loop = [&](int axis) {
    return Loop{box.axis[axis].length(), from_layout.stride(axis), to_layout.stride(axis)};
  };
  if (from_layout.fastest() == to_layout.fastest()) {
    const Loop outer = loop(to_layout.order()[0]), inner = loop(to_layout.order()[1]);
    const long run = box.axis[to_layout.fastest()].length();
    for (long i = 0; i < outer.length; ++i) {
      for (long j = 0; j < inner.length; ++j) {
        std::copy_n(from + i * outer.from_stride + j * inner.from_stride, run,
                    to + i * outer.to_stride + j * inner.to_stride);
      }
    }
    return;
  }
  const int rows = from_layout.fastest(), columns = to_layout.fastest();
  const Loop outer = loop(3 - rows - columns);
  for (long i = 0; i < outer.length; ++i) {
    copy_tiles(loop(rows), loop(columns), from + i * outer.from_stride, to + i * outer.to_stride);
  }
}

template void copy_box<float>(const Box&, const Layout&, const std::complex<float>*, const Layout&,
                              std::complex<float>*);
template void copy_box<double>(const Box&, const Layout&, const std::complex<double>*,
                               const Layout&, std::complex<double>*);

}  // namespace fft3d
