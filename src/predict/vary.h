// SPDX-License-Identifier: Apache-2.0
//
// What a figure comes to at least and at most where some numbers are elsewhere in their ranges, for
// figures that take a simulation for each try.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "machine/sheet.h"

namespace carillon::predict {

/// A number that has a range; `set` gives it a value in a variant of what the figure is of.
template <typename Variant>
struct Varied {
  double min = 0, max = 0;
  std::function<void(double, Variant*)> set;
};

struct Extremes {
  double least = 0, most = 0;
};

/// How often extremes() asks for the value.
constexpr std::size_t tries_of_extremes(std::size_t varied) { return 2 * varied + 2; }

/// Each number alone to either end; then all of them to the ends that have taken the figure
/// furthest down, and furthest up. `ours` is the figure where nothing is varied.
template <typename Variant, typename Value>
Extremes extremes(const Variant& as_it_is, double ours, const std::vector<Varied<Variant>>& varied,
                  Value value) {
  Variant lowest = as_it_is, highest = as_it_is;
  Extremes found{ours, ours};
  for (const Varied<Variant>& each : varied) {
    Extremes alone{ours, ours};
    for (const double end : {each.min, each.max}) {
      Variant variant = as_it_is;
      each.set(end, &variant);
      const double there = value(variant);
      if (there < alone.least) each.set(end, &lowest);
      if (there > alone.most) each.set(end, &highest);
      alone = {std::min(alone.least, there), std::max(alone.most, there)};
    }
    found = {std::min(found.least, alone.least), std::max(found.most, alone.most)};
  }
  return {std::min(found.least, value(lowest)), std::max(found.most, value(highest))};
}

/// The machine's numbers of these names, as the paper varies them; an error if one has no range.
Result<std::vector<machine::Number>> varied_numbers(const std::vector<std::string>& names,
                                                    const machine::Sheet& sheet);

}  // namespace carillon::predict
