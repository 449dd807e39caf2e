// SPDX-License-Identifier: Apache-2.0
//
// The measuring half of `carillon calibrate`.
#pragma once

#include <string>

#include "machine/calibrated.h"

namespace carillon::cli {

/// Two processes that are bcast.binomial's ranks 0 and 1 in turn as root. `parameters` as in
/// CARILLON_ALGORITHM; `between_nodes`: the ranks count as nodes. Fails if they cannot.
machine::PingPong measure_ping_pong(const std::string& parameters, bool between_nodes);

machine::MemoryCost measure_copy(std::int64_t cache_bytes);
machine::MemoryCost measure_reduce(std::int64_t cache_bytes);

}  // namespace carillon::cli
