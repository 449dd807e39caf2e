// SPDX-License-Identifier: Apache-2.0
//
// Calls to try algorithms on, where there is no program that makes them.
#pragma once

#include "schedule/even_tables.h"
#include "schedule/uneven_tables.h"

namespace carillon::cli {

using carillon::EvenTables;
using carillon::UnevenTables;

}  // namespace carillon::cli
