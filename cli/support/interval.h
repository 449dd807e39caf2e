// SPDX-License-Identifier: Apache-2.0
//
// How well a median is known.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace carillon::cli {

/// Of the median of at least one value, with a confidence of 95 %: from the k-th least to the k-th
/// greatest, of which the values of a fair coin's throws are in that much. Below 6 values there is
/// no such k, and it is all of them.
inline std::pair<double, double> median_interval(std::vector<double> values) {
  constexpr double kOutside = 0.05;
  const std::size_t count = values.size();
  double ways = 1, outside = 0;
  const double all = std::pow(2.0, static_cast<double>(count));
  std::size_t k = 0;
  while (k + 1 <= count / 2) {
    outside += 2 * ways / all;
    if (outside > kOutside) break;
    ways *= static_cast<double>(count - k) / static_cast<double>(k + 1);
    ++k;
  }
  std::sort(values.begin(), values.end());
  const std::size_t place = std::max<std::size_t>(k, 1) - 1;
  return {values[place], values[count - 1 - place]};
}

}  // namespace carillon::cli
