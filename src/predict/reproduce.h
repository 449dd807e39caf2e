// SPDX-License-Identifier: Apache-2.0
//
// A paper's figures next to ours.
#pragma once

#include <functional>
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
  double ours_min = 0, ours_max = 0;  ///< over the ranges of all the machine's numbers, or of
                                      ///< those that are varied; of an unpublished figure ours
  std::int32_t k = 0;                 ///< the best one; 0: none was looked for
  std::int64_t bytes = 0;             ///< of the figure's lengths, or grids, that of `ours`
};

/// The paper's figures by one of its candidates.
struct Tried {
  std::vector<double> ours;  ///< by simulation, as the paper has them
  double deviation = 0;      ///< of all figures: the root of the mean square
};

struct Reproduction {
  std::vector<Fitted> fitted;
  std::vector<machine::Number> varied;  ///< Paper::varied
  std::vector<Reproduced> figures;      ///< as the paper has them; of candidates, by the closest
  std::vector<Tried> tried;             ///< the candidates, as the paper has them
  std::size_t closest = 0;              ///< of `tried`
};

/// on_progress(done, of): after each candidate, and each variant of the closest; of programs, each
/// program, and `of` is 0.
Result<Reproduction> reproduce(
    const Paper& paper, const std::function<void(std::size_t, std::size_t)>& on_progress = {});

/// From the nearer end of what was published.
double deviation(const Figure& figure, double ours);

}  // namespace carillon::predict
