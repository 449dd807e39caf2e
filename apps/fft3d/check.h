// SPDX-License-Identifier: Apache-2.0
//
// Compares with what FFTW computes on one rank. Rank 0 transforms the whole field, and sends every
// rank its part of the spectrum; the field itself every rank can make.
//
// An error is the largest one of any number, in root mean squares of what is expected. FFTW's own
// errors grow with the logarithm of the points, on both sides; the bound is
//
//   4 epsilon (1 + log2(N0 N1 N2))
//
// which is 2e-14 for 256^3 in double precision. A number in a wrong place is off by about 1.
#ifndef FFT3D_CHECK_H
#define FFT3D_CHECK_H

#include <mpi.h>

#include <complex>
#include <vector>

#include "decomposition.h"

namespace fft3d {

struct Verdict {
  double forward_error = 0, backward_error = 0;  // the largest so far
  double bound = 0;
  bool passed() const { return forward_error <= bound && backward_error <= bound; }
};

double error_bound(const Shape& points, double epsilon);

template <class Real>
class Check {
 public:
  using Complex = std::complex<Real>;

  // Collective. Rank 0 has the whole field and its spectrum in memory meanwhile.
  Check(const Decomposition& decomposition, MPI_Comm world);

  // This rank's part of the right spectrum, in the spectrum's layout.
  const std::vector<Complex>& spectrum() const { return spectrum_; }

  void after_forward(const Complex* spectrum);
  // Field: real or complex numbers in the field's layout.
  template <class Value>
  void after_backward(const Value* field);

  // Collective: the largest errors of all ranks. Every rank gets the same.
  Verdict verdict() const;

 private:
  // Of all ranks' values: each gives the sum of its squares.
  double root_mean(double sum, double values) const;

  Shape points_;
  Layout field_layout_;
  MPI_Comm world_;
  std::vector<Complex> spectrum_;
  double spectrum_rms_ = 0, field_rms_ = 0;
  Verdict mine_;
};

}  // namespace fft3d

#endif
