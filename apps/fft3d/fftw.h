// SPDX-License-Identifier: Apache-2.0
//
// FFTW in two precisions under one name: Fftw<float> and Fftw<double>. std::complex has the layout
// of FFTW's own complex type.
#ifndef FFT3D_FFTW_H
#define FFT3D_FFTW_H

#include <fftw3.h>

namespace fft3d {

template <class Real>
struct Fftw;

template <>
struct Fftw<double> {
  using Complex = fftw_complex;
  using Plan = fftw_plan;
  using Dimension = fftw_iodim64;
  static constexpr auto kComplex = fftw_plan_guru64_dft;
  static constexpr auto kForwardReal = fftw_plan_guru64_dft_r2c;
  static constexpr auto kBackwardReal = fftw_plan_guru64_dft_c2r;
  static constexpr auto kExecute = fftw_execute;
  static constexpr auto kDestroy = fftw_destroy_plan;
  static constexpr auto kAllocate = fftw_malloc;
  static constexpr auto kFree = fftw_free;
};

template <>
struct Fftw<float> {
  using Complex = fftwf_complex;
  using Plan = fftwf_plan;
  using Dimension = fftwf_iodim64;
  static constexpr auto kComplex = fftwf_plan_guru64_dft;
  static constexpr auto kForwardReal = fftwf_plan_guru64_dft_r2c;
  static constexpr auto kBackwardReal = fftwf_plan_guru64_dft_c2r;
  static constexpr auto kExecute = fftwf_execute;
  static constexpr auto kDestroy = fftwf_destroy_plan;
  static constexpr auto kAllocate = fftwf_malloc;
  static constexpr auto kFree = fftwf_free;
};

}  // namespace fft3d

#endif
