// SPDX-License-Identifier: Apache-2.0
//
// One-dimensional transforms along all lines of an axis within a box, by FFTW. The work may be cut
// into pieces, so that a caller can do something between them.
#ifndef FFT3D_LINES_H
#define FFT3D_LINES_H

#include <complex>
#include <vector>

#include "box.h"
#include "fftw.h"

namespace fft3d {

enum class Direction { kForward, kBackward };

// Where the points are. A real field has an array of its own for what axis 2 is before it is
// transformed; everything else is transformed in place.
template <class Real>
struct Arrays {
  Layout layout;
  std::complex<Real>* points = nullptr;
  Layout field_layout;
  Real* field = nullptr;
};

struct LineWork {
  int axis;
  Direction direction;
  int cut_axis;  // the pieces are parts of the box along this one
  int pieces;
  unsigned planner;  // FFTW_ESTIMATE or FFTW_MEASURE; the latter overwrites the arrays
};

template <class Real>
class Lines {
 public:
  Lines(const Arrays<Real>& arrays, const Box& box, const LineWork& work);
  Lines(Lines&&) noexcept = default;
  Lines& operator=(Lines&&) = delete;
  ~Lines();

  int pieces() const { return static_cast<int>(plans_.size()); }
  void execute(int piece) const { Fftw<Real>::kExecute(plans_[piece]); }

 private:
  std::vector<typename Fftw<Real>::Plan> plans_;
};

}  // namespace fft3d

#endif
