// SPDX-License-Identifier: Apache-2.0
//
// The 3D transform of a field, forward and backward. Like FFTW's, backward does not scale: forward
// and then backward is the field times N0 N1 N2.
//
// Forward: axis 2, exchange, axis 1, exchange, axis 0. Backward: the other way round.
#ifndef FFT3D_TRANSFORM_H
#define FFT3D_TRANSFORM_H

#include <array>
#include <vector>

#include "buffer.h"
#include "stage.h"

namespace fft3d {

// The arrays of a rank. Several transforms may use them in turn.
template <class Real>
class Workspace {
 public:
  using Complex = std::complex<Real>;

  Workspace(const Decomposition& decomposition, int rank, bool from_mpi);

  // The points while this axis is whole.
  Arrays<Real> arrays(int whole_axis);
  // The field: real numbers, or, if it is a complex one, the points while axis 2 is whole.
  Real* real_field() { return field_.data(); }
  Complex* complex_field() { return arrays(2).points; }
  Complex* spectrum() { return arrays(0).points; }
  Complex* send() { return send_.data(); }
  Complex* receive() { return receive_.data(); }
  const Layout& field_layout() const { return field_layout_; }
  const Layout& spectrum_layout() const { return layouts_[0]; }

 private:
  Layout field_layout_;
  std::array<Layout, 3> layouts_;
  std::array<int, 3> place_;  // which of points_ has the points
  Buffer<Real> field_;        // none if it is complex
  std::array<Buffer<Complex>, 2> points_;
  Buffer<Complex> send_, receive_;
};

template <class Real>
class Transform {
 public:
  // Collective. With FFTW_MEASURE it overwrites the workspace.
  Transform(const Decomposition& decomposition, const Communicators& communicators,
            const Method& method, unsigned planner, Workspace<Real>& workspace);

  // From field to spectrum, or back; either overwrites the other and its own input.
  void run(Direction direction, Times& times);
  // The exchanges of a run, of whatever the buffers hold, and nothing else.
  void exchange_alone(Direction direction);

 private:
  std::vector<Stage<Real>>& stages(Direction direction) {
    return direction == Direction::kForward ? forward_ : backward_;
  }

  std::vector<Stage<Real>> forward_, backward_;
};

}  // namespace fft3d

#endif
