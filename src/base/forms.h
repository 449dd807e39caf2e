// SPDX-License-Identifier: Apache-2.0
//
// Forms that values of settings have.
#pragma once

#include <string_view>

#include "base/status.h"

namespace carillon {

/// An error if CARILLON_NETWORK names no network there is. Whether a device is there is seen where
/// it is opened.
Status check_network(std::string_view text);

/// The same of CARILLON_MULTICAST.
Status check_multicast(std::string_view text);

/// Which part a rank belongs to, 0, 1, ..., of a list as CARILLON_NODE_RANKS and
/// CARILLON_DOMAIN_RANKS have it. "3,1,2": the first three ranks are one part, the next one is
/// another, ..., and so on from the start; "rr:2": one after another in two parts in turn. An error
/// names the setting.
Result<int> part_of_rank(std::string_view setting, std::string_view sizes, int rank);

}  // namespace carillon
