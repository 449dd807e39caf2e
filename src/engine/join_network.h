// SPDX-License-Identifier: Apache-2.0
//
// Joining the network: processes on several nodes agree on one that all of them have, open their
// ends of it and tell each other where they are. Not used, and no library loaded, on one node.
#pragma once

#include <memory>

#include "base/config.h"
#include "base/status.h"
#include "carillon/carillon.h"
#include "transport/net/network.h"

namespace carillon {

/// Collective over oob; blocks, for settings.join_timeout_s at most. Whether it succeeds is equal
/// on all processes.
Result<std::unique_ptr<net::Network>> join_network(const crl_oob_t& oob, const Config& settings);

}  // namespace carillon
