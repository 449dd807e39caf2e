// SPDX-License-Identifier: Apache-2.0
//
// Which teams can have a group of a switch: the library when it makes a team, and whoever foretells
// what it would choose, ask the same.
#pragma once

#include <algorithm>
#include <cstdint>

#include "switch/protocol/protocol.h"

namespace carillon::aggregate {

/// Whether a switch of so many child ports has one for each of a team's nodes. A tree of switches
/// joins no more: when one goes away, the hosts do the work of all as if they were one.
constexpr bool one_switch_joins(std::int64_t nodes, std::int64_t ports = kMaxChildren) {
  return nodes <= std::min<std::int64_t>(ports, kMaxChildren);
}

}  // namespace carillon::aggregate
