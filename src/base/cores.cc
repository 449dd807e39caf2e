// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <sched.h>

#include <array>
#include <cstddef>

namespace carillon {
namespace {

// The kernel refuses a set that is smaller than its own.
constexpr int kMostCores = 65536;
using CoreSet = std::array<cpu_set_t, kMostCores / CPU_SETSIZE>;

}  // namespace

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  CoreSet set = {};
  if (sched_getaffinity(0, sizeof set, set.data()) != 0) return cores;
  for (int core = 0; core < kMostCores; ++core) {
    if (CPU_ISSET_S(core, sizeof set, set.data())) cores.push_back(core);
  }
  return cores;
}

bool pin_to_core(int core) {
  if (core < 0 || core >= kMostCores) return false;
  CoreSet set = {};
  CPU_SET_S(core, sizeof set, set.data());
  return sched_setaffinity(0, sizeof set, set.data()) == 0;
}

}  // namespace carillon
