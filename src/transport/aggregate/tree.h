// SPDX-License-Identifier: Apache-2.0
//
// The tree of a team's hosts, made of the way up that each of them has: which port is whose, and in
// which order operands are combined. All hosts make the same of the same ways.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "transport/aggregate/control.h"

namespace carillon::aggregate {

inline constexpr std::size_t kMaxLevels = 4;       ///< switches from a host to the root
inline constexpr std::uint32_t kMaxPlaces = 4096;  ///< of hosts in the order of operands

/// A host's switch, the one above, ..., the root. Plain data: hosts tell each other.
struct WayUp {
  std::array<Endpoint, kMaxLevels> at = {};
  std::uint32_t levels = 0;
  [[nodiscard]] std::span<const Endpoint> switches() const { return std::span(at).first(levels); }
};

struct HostTree {
  std::vector<TreeSwitch> switches;  ///< a plan's
  std::vector<std::uint16_t> ports;  ///< of each host at its switch
  /// Of each host: one switch with hosts at these ports would combine as the tree does.
  std::vector<std::uint32_t> places;
};

/// Of hosts by number; at each switch, what is at its ports is in the order of their first hosts.
/// An error says which ways do not fit together.
Result<HostTree> tree_of(std::span<const Endpoint> hosts, std::span<const WayUp> ways);

}  // namespace carillon::aggregate
