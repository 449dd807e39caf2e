// SPDX-License-Identifier: Apache-2.0
//
// Prints what was measured: for people, or as JSON.
#ifndef FFT3D_REPORT_H
#define FFT3D_REPORT_H

#include <string>

#include "measure.h"
#include "options.h"

namespace fft3d {

std::string text_report(const Options& options, const Result& result);
std::string json_report(const Options& options, const Result& result);

}  // namespace fft3d

#endif
