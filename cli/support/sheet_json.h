// SPDX-License-Identifier: Apache-2.0
//
// A machine's numbers and where they come from, as JSON.
#pragma once

#include "machine/sheet.h"
#include "support/json.h"

namespace carillon::cli {

Json sheet_json(const machine::Sheet& sheet);

}  // namespace carillon::cli
