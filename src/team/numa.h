// SPDX-License-Identifier: Apache-2.0
//
// NUMA domains: which processes of a node have the same part of its memory near them.
#pragma once

#include <bitset>
#include <cstddef>
#include <span>
#include <vector>

namespace carillon {

inline constexpr std::size_t kMaxCores = 1024;
/// Those that a process may run on, by the system's numbers.
using Cores = std::bitset<kMaxCores>;

inline constexpr const char* kHwlocName = "libhwloc.so.15";  ///< of hwloc 2

/// The domain of each process, any number from 0 on, as hwloc has them; -1: not known, as of a
/// process that may run in several, or where hwloc is not there or cannot read the machine, which
/// is logged. hwloc is loaded only if not all processes may run on the same cores, and only where
/// the kernel tells of several domains, or HWLOC_SYNTHETIC or HWLOC_XMLFILE describes a machine in
/// place of this one. Takes some tens of milliseconds then: once per node. Any thread, but for
/// these variables.
std::vector<int> numa_domains(std::span<const Cores> processes,
                              const char* library_name = kHwlocName);

}  // namespace carillon
