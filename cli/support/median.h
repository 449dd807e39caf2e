// SPDX-License-Identifier: Apache-2.0
//
// The median of what was measured.
#pragma once

#include <algorithm>
#include <vector>

namespace carillon::cli {

/// Of at least one value; of an even number the upper one of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace carillon::cli
