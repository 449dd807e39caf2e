// SPDX-License-Identifier: Apache-2.0
//
// What is said of switches, for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {

/// "10.0.0.1:27182"
std::string text(const Endpoint& endpoint);
/// The same, with or without the port, which is then kUdpPort.
std::optional<Endpoint> parse_endpoint(const std::string& text);
/// CARILLON_SWITCH: this node's switch, or with commas also the one above, ..., the root of a tree.
Result<std::vector<Endpoint>> parse_path(const std::string& text);
/// The switch there refused, and what to do about it.
Status refusal_status(const Endpoint& from, Reason reason);

}  // namespace carillon::aggregate
