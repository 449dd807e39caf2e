// SPDX-License-Identifier: Apache-2.0
//
// This machine: its cores, and its floor, the times no collective can beat.
#pragma once

#include <optional>
#include <string>

#include "support/json.h"

namespace carillon::cli {

/// Cores this process may run on (its affinity mask).
int usable_cores();

struct Floor {
  int cores = 1;
  /// One cache line from one core to another: half of a round trip. None with one core.
  std::optional<double> cache_line_ns;
  /// One core copying 1 MiB of its own, again and again.
  double copy_gb_per_s = 0;
  /// One core copying 1 MiB that another has just written. None with one core.
  std::optional<double> load_gb_per_s;
};

/// Takes about 0.1 s; nothing else should run meanwhile.
Floor measure_floor();

Json to_json(const Floor& floor);
/// Two lines for a person.
std::string to_text(const Floor& floor);

}  // namespace carillon::cli
