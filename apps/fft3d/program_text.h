// SPDX-License-Identifier: Apache-2.0
//
// What fft3d's transforms call and compute on any number of ranks, without running on them: the
// text of a program as carillon records and simulates them. Computations take as long as the work
// in them does at the rates in the options.
#ifndef FFT3D_PROGRAM_TEXT_H
#define FFT3D_PROGRAM_TEXT_H

#include <string>

#include "options.h"

namespace fft3d {

// Of options.program_of ranks, for which the options have been fit. All iterations, each as
// `measure` has it: a barrier before each direction.
std::string program_text(const Options& options);

}  // namespace fft3d

#endif
