// SPDX-License-Identifier: Apache-2.0
//
// All settings there are: the library's table (base/config.h) and the interposer's own.
#pragma once

#include <vector>

#include "base/config.h"

namespace carillon::cli {

std::vector<Setting> all_settings();

/// Fails if CARILLON has a value that cannot be.
void require_interposer_settings();

}  // namespace carillon::cli
