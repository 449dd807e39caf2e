// SPDX-License-Identifier: Apache-2.0
#include "cluster/busy.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace carillon::cli {

Busy::Ticks Busy::now() {
  // "cpu user nice system idle iowait irq softirq steal guest ...": guest is part of user.
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  Ticks ticks;
  std::int64_t value = 0;
  for (int column = 0; column < 8 && file >> value; ++column) {
    ticks.all += value;
    if (column == 3 || column == 4) ticks.idle += value;
  }
  return ticks;
}

double Busy::percent() const {
  const Ticks end = now();
  const auto all = static_cast<double>(std::max<std::int64_t>(end.all - ticks_.all, 1));
  const auto idle = static_cast<double>(end.idle - ticks_.idle);
  return std::clamp(100 * (1 - idle / all), 0.0, 100.0);
}

double Busy::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace carillon::cli
