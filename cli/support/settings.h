// SPDX-License-Identifier: Apache-2.0
//
// All settings there are: the library's table (base/config.h) and the interposer's own.
#pragma once

#include <vector>

#include "base/config.h"

namespace carillon::cli {

std::vector<Setting> all_settings();

/// Fails if one of the library's has not the form it is to have, which ranks see when they use it.
void require_forms(const Config& settings);

/// Fails if one of the interposer's has a value that cannot be.
void require_interposer_settings();

/// Fails if a file that settings name cannot be read or written, as far as can be seen without
/// making it. What a job's first rank alone opens is looked at where that one is: other nodes need
/// not have it.
void require_files(const Config& settings, bool first_rank);

}  // namespace carillon::cli
