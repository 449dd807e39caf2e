// SPDX-License-Identifier: Apache-2.0
//
// A paper's figures next to ours.
#pragma once

#include <optional>

#include "machine/sheet.h"
#include "predict/paper.h"

namespace carillon::predict {

/// A number of the machine that no source gives, chosen within its range so that the measured
/// figures come out best.
struct Fitted {
  machine::Number number;
  double value = 0;
};

struct Reproduced {
  double ours = 0;                    ///< by simulation, with the fitted numbers
  std::optional<double> model;        ///< by closed forms, if there are
  double ours_min = 0, ours_max = 0;  ///< over the ranges of all the machine's numbers
  std::int32_t k = 0;                 ///< the best one; 0: none was looked for
};

struct Reproduction {
  std::vector<Fitted> fitted;
  std::vector<Reproduced> figures;  ///< as the paper has them
};

Result<Reproduction> reproduce(const Paper& paper);

}  // namespace carillon::predict
