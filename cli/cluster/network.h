// SPDX-License-Identifier: Apache-2.0
//
// The wires of a virtual cluster: a bridge in a network namespace of its own, the switch, and per
// node a veth pair from it to the node's namespace. Nothing of it is in the host's network.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace carillon::cli {

/// The host name of the switch's namespace, where the launcher runs.
inline constexpr const char* kFrontName = "front";
/// And its address, with a wire to each node.
inline constexpr const char* kFrontAddress = "10.0.255.254";

/// A smaller burst makes the kernel cut its large segments into packets, which costs more than all
/// else.
inline constexpr std::int64_t kUsualBurst = 256 << 10;

struct Wires {
  std::int64_t bits_per_s = 0;             ///< of each wire, each way; 0: no limit
  std::int64_t burst_bytes = kUsualBurst;  ///< that go at full speed after a pause
  double loss = 0;                         ///< share of the packets to each node that are dropped
  bool snooping = false;  ///< the switch asks who has joined a group (IGMP), and only they hear
};

/// Fails, with what to install, if ip, tc (for a rate) or nft (for loss) is missing.
void require_network_tools(const Wires& wires);

/// /etc/hosts of every node: all nodes and the front.
std::string hosts_file(int nodes);

/// To be called in the switch's network namespace. `nodes` holds the first process of each node.
void connect_nodes(const std::vector<pid_t>& nodes, const Wires& wires);

/// Bytes that all nodes together have sent to the switch and received from it, headers included.
struct WireBytes {
  std::int64_t sent = 0, received = 0;
};
WireBytes wire_bytes();

}  // namespace carillon::cli
