// SPDX-License-Identifier: Apache-2.0
//
// A machine's numbers and where they come from, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "machine/sheet.h"

namespace carillon::cli {

nlohmann::ordered_json sheet_json(const machine::Sheet& sheet);

}  // namespace carillon::cli
