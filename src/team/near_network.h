// SPDX-License-Identifier: Apache-2.0
//
// Which cores are near a network's device, as the kernel tells, from whom hwloc has it, too.
#pragma once

#include <filesystem>
#include <string_view>

#include "team/numa.h"

namespace carillon {

/// The cores of a list of the kernel's, "0-3,8"; none if it is no such list.
Cores parse_cores(std::string_view list);

/// `network` as its capabilities name it: of "verbs NAME" the cores near that device, of others
/// those near any of the machine's network devices. None: not known. `classes` stands for
/// /sys/class in tests.
Cores cores_near_network(std::string_view network,
                         const std::filesystem::path& classes = "/sys/class");

}  // namespace carillon
