// SPDX-License-Identifier: Apache-2.0
//
// Whether the settings can be used as they are written, for who starts programs: processes that
// read them later would say so each for itself, or not at all if they never come to use one.
#pragma once

#include "base/config.h"
#include "base/status.h"

namespace carillon {

/// What read_config() does not know of the values: networks, addresses and lists of ranks. Devices
/// and interfaces are not looked for: they are those of the ranks' machines.
Status check_settings(const Config& settings);

}  // namespace carillon
