// SPDX-License-Identifier: Apache-2.0
//
// The wires of a virtual cluster: a bridge in a network namespace of its own, the switch, and per
// node a veth pair from it to the node's namespace; or a tree, whose leaves are bridges in
// namespaces of their own. Nothing of it is in the host's network.
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

/// Of a leaf switch, which is the "leaf0", ... of front's.
std::string leaf_name(int leaf);
std::string leaf_address(int leaf);
/// Which leaf a node's wire leads to; each has as many nodes as the others, or one more.
int leaf_of(int node, int nodes, int leaves);

/// Ethernet's, and what a virtual wire can have.
inline constexpr int kUsualMtu = 1500, kMinMtu = 576, kMaxMtu = 65535;

struct Wires {
  std::int64_t bits_per_s = 0;             ///< of each wire, each way; 0: no limit
  std::int64_t burst_bytes = kUsualBurst;  ///< that go at full speed after a pause
  double loss = 0;                         ///< share of the packets to each node that are dropped
  bool snooping = false;  ///< the switch asks who has joined a group (IGMP), and only they hear
  int mtu = kUsualMtu;
  int leaves = 0;  ///< switches between the nodes and the front's; 0: none
};

/// Fails, with what to install, if ip, tc (for a rate) or nft (for loss) is missing.
void require_network_tools(const Wires& wires);

/// /etc/hosts of every node: all nodes and the front.
std::string hosts_file(int nodes);

/// To be called in the switch's network namespace. `nodes` holds the first process of each node,
/// `leaves` that of each leaf.
void connect_nodes(const std::vector<pid_t>& nodes, const std::vector<pid_t>& leaves,
                   const Wires& wires);

/// Bytes that all nodes together have sent to their switches and received from them, headers
/// included; and all leaves to the switch above and from it.
struct WireBytes {
  std::int64_t sent = 0, received = 0;
  std::int64_t leaves_sent = 0, leaves_received = 0;
};
WireBytes wire_bytes(const std::vector<pid_t>& leaves);

}  // namespace carillon::cli
