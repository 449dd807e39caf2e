// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace carillon {

/// All bytes of the file at `path`. An error names it and says why; a folder is no file.
Result<std::string> read_whole_file(const std::string& path);

}  // namespace carillon
