// SPDX-License-Identifier: Apache-2.0
//
// A machine, as the simulator and the closed-form models see it: what each thing costs.
//
// Times are integer picoseconds (`_ps`), costs per byte integer femtoseconds (`_fs`): 0.08 ns per
// byte are 80,000 fs. There is one rounding rule, cost(); everything else is addition and maximum,
// so that the simulator and a closed form can agree to the picosecond.
//
// What happens to a message of n bytes between nodes, where nothing else is in the way:
//
//   writer's CPU   network.send_overhead + one_sided.post + one_sided.doorbell   (put, signal)
//                  network.send_overhead + two_sided.post                        (send)
//                  + n bytes at network.send_byte
//                  + the copy into a registered buffer, if there is one
//   writer's bus   bus.per_message, then n bytes at bus.per_byte
//   writer's NIC   n bytes at network.per_byte, + network.gather per list entry after the first,
//                  + network.fragment per fragment after the first
//   wire           network.latency + topology.hop_latency per hop
//   reader's bus   bus.per_message (with bus.cut_through false: + n bytes at bus.per_byte)
//   reader's CPU   network.recv_overhead + one_sided.poll                        (wait)
//                  network.recv_overhead + two_sided.match + the eager copy out  (recv)
//
// With bus.cut_through the bytes pass bus and NIC at the pace of the slower of them; else the last
// byte leaves the bus before the first one enters the NIC. The NIC takes the next message
// network.gap after the last byte of the one before, in each direction. A reader's NIC takes
// bytes no faster than its own network.per_byte (and bus), whoever sends them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace carillon::machine {

/// Times beyond it are refused: what comes next, which is shorter, could not be told in 63 bits.
inline constexpr std::int64_t kLastPs = INT64_MAX / 4;
/// Of what takes longer by itself, so much that sums with it are refused, too.
constexpr std::int64_t at_most_last(std::int64_t ps) { return std::min(ps, kLastPs + 1); }

/// So many thousandths of a number, rounded to nearest, half up.
constexpr std::int64_t thousandths(std::int64_t number, std::int64_t permille) {
  return number / 1000 * permille + (number % 1000 * permille + 500) / 1000;
}

/// `bytes` at `per_byte_fs` femtoseconds each, in picoseconds.
/// Rounded once per thing that takes time: one op's copy, one message's way through one stage.
constexpr std::int64_t cost(std::int64_t bytes, std::int64_t per_byte_fs) {
  std::int64_t ps = 0;
  if (__builtin_mul_overflow(bytes / 1000, per_byte_fs, &ps)) return kLastPs + 1;
  return at_most_last(ps) + (bytes % 1000 * per_byte_fs + 500) / 1000;
}

/// So many things that take so long each, one after the other.
constexpr std::int64_t repeated(std::int64_t times, std::int64_t each_ps) {
  std::int64_t ps = 0;
  return __builtin_mul_overflow(times, each_ps, &ps) ? kLastPs + 1 : at_most_last(ps);
}

/// LogGP: what any message between nodes costs.
struct Network {
  std::int64_t latency_ps = 1'000'000;  ///< L: last byte out of one NIC to last byte in another
  std::int64_t send_overhead_ps = 0;    ///< o_s: CPU time per message, however it is sent
  std::int64_t send_byte_fs = 0;        ///< and per byte, where it hands the payload to a socket
  std::int64_t recv_overhead_ps = 0;    ///< o_r: CPU time per message, however it is received
  std::int64_t gap_ps = 10'000;         ///< g: from the end of a message to the next one's start
  std::int64_t per_byte_fs = 80'000;    ///< G: the NIC and its link, in each direction
  std::int64_t gather_ps = 0;           ///< NIC time per list entry after the first
  std::int32_t max_entries = 30;        ///< longest list; longer ones are packed by a copy,
  bool cuts_lists = false;              ///< or put and sent in several requests
  std::int32_t send_queue = 128;        ///< messages that wait for the NIC before a post waits
  std::int64_t fragment_bytes = INT64_MAX;  ///< MTU where the sender pays per fragment
  std::int64_t fragment_ps = 0;             ///< NIC time per fragment after the first
};

/// The bus between memory and NIC, one per node. Zero: none.
struct Bus {
  std::int64_t per_message_ps = 0;
  std::int64_t per_byte_fs = 0;
  bool cut_through = true;   ///< bytes go on before the last has come
  bool half_duplex = false;  ///< both directions share it
};

/// put, signal and wait between nodes.
struct OneSided {
  std::int64_t post_ps = 40'000;      ///< CPU: writing the request
  std::int64_t doorbell_ps = 40'000;  ///< CPU: telling the NIC
  std::int64_t poll_ps = 20'000;      ///< CPU: looking at one slot and finding the message there
  std::int64_t inline_bytes = 0;      ///< up to here the payload is part of the request
  std::int64_t inline_byte_fs = 0;    ///< CPU time per byte of such a payload
  /// Longer payloads are first copied into registered memory, unless they are there already: in a
  /// slot, or in an input or output that is staged.
  bool stage_puts = false;
  bool stage_input = false;   ///< the call begins by copying its input into registered memory,
  bool stage_output = false;  ///< and ends by copying its output out of there
};

/// send and recv between nodes.
struct TwoSided {
  std::int64_t post_ps = 60'000;    ///< CPU: posting a send, or a receive
  std::int64_t match_ps = 40'000;   ///< CPU: finding the receive of a message that has come
  std::int64_t eager_bytes = 8192;  ///< up to here the payload goes along at once
  bool copy_in = true;              ///< eager payloads are copied into a buffer,
  bool copy_out = true;             ///< and out of one (memory's copy costs)
  /// Longer messages ask first: an empty message there, one back, then the payload, each a message
  /// as above. This is CPU time on either side to deal with one of the two.
  std::int64_t rendezvous_ps = 100'000;
};

/// Copies and reductions by a rank's CPU.
struct Memory {
  std::int64_t copy_ps = 5'000;          ///< per copy op
  std::int64_t copy_block_ps = 0;        ///< per entry of its two lists
  std::int64_t copy_run_ps = 2'000;      ///< per contiguous run, the first included
  std::int64_t copy_cached_fs = 50'000;  ///< per byte copied, if twice the bytes fit the cache
  std::int64_t copy_byte_fs = 100'000;   ///< per byte copied, if not
  std::int64_t cache_bytes = 1 << 20;
  std::int64_t reduce_ps = 5'000;          ///< per reduce op
  std::int64_t reduce_cached_fs = 60'000;  ///< per result byte, if three times the bytes fit
  std::int64_t reduce_byte_fs = 150'000;   ///< per result byte, if not
  /// Per byte copied or reduced, of the whole node's memory, which its ranks share, in copy and
  /// reduce ops and in messages alike. Zero: never the bottleneck.
  std::int64_t node_byte_fs = 0;
  /// How much longer a computation takes, in thousandths, while its node's memory is as busy as
  /// it can be. For programs.
  std::int64_t compute_slowdown_permille = 0;
};

/// Messages between ranks of one node.
struct SharedMemory {
  std::int64_t latency_ps = 80'000;   ///< from the write to when a reader sees it
  std::int64_t overhead_ps = 10'000;  ///< CPU per message, on either side
  std::int64_t line_bytes = 56;       ///< up to here a message is one cache line:
  std::int64_t line_ps = 0;           ///< CPU time to write its payload
  std::int64_t write_ps = 10'000;     ///< longer ones: CPU per message to get a chunk,
  std::int64_t per_byte_fs = 80'000;  ///< and per byte to write it
  /// A message that is lent, which its reader copies from the writer's private memory: CPU per
  /// read, and per byte. Nothing per byte: ranks cannot read each other's memory.
  std::int64_t lent_ps = 0;
  std::int64_t lent_byte_fs = 0;
  /// A message from another NUMA domain: seen so much later, and read more slowly, per byte, on a
  /// way that the ranks of the reader's domain share.
  std::int64_t cross_latency_ps = 0;
  std::int64_t cross_byte_fs = 0;
};

/// Unreliable datagrams, which multicast uses.
struct Datagram {
  std::int64_t mtu_bytes = 4096;
  std::int64_t fragment_ps = 100'000;  ///< CPU per datagram, on either side
  /// NIC time at a node, per datagram, for each process attached after the first. The copy itself
  /// crosses the bus, if there is one.
  std::int64_t deliver_ps = 100'000;
  bool known = true;  ///< false: the machine's file has no such section
};

/// To a group of nodes at once.
struct Multicast {
  std::int64_t replicate_ps = 200'000;  ///< in the switches, per level
  std::int64_t ack_ps = 1'000'000;      ///< until the sender knows that all have it
  /// How long a process waits for the one of its node that receives multicasts to nodes, before it
  /// receives them itself.
  std::int64_t patience_ps = 200'000'000;
  bool known = true;  ///< false: the machine's file has no such section
};

/// One level of switches, from the nodes upwards.
struct Level {
  std::int32_t radix = 1;  ///< how many nodes, or switches of the level below, one switch joins
  /// Traffic that leaves such a switch upwards has 1000 / this of the bandwidth of what it joins.
  /// Simulated as every message's share: the bytes take that much longer.
  std::int64_t oversubscription_permille = 1000;
};

/// Switches that reduce, in a tree, and what a host gives them and takes of them
/// (docs/switch-protocol.md). No ports: there are none.
///
///   host's CPU     send + the copy into a packet; at the end receive + the copy out
///   host's NIC     header + operand at network.per_byte (and bus, as any message); nic, link
///   switch, up     from the last byte of the last child: combine_ps(), then the packet leaves
///   switch, down   from the last byte of the result: forward_ps(), then it leaves on all ports
///   port           a packet takes packet_ps(), the next one network.gap later; then link
struct InSwitch {
  std::int32_t ports = 0;             ///< children of a switch; one more leads up
  std::int32_t window = 64;           ///< packets of a host in flight
  std::int64_t operand_bytes = 1408;  ///< of a packet, at most
  std::int64_t header_bytes = 92;     ///< of a packet on the wire, beside its operand
  std::int64_t send_ps = 0;           ///< CPU per packet
  std::int64_t receive_ps = 0;        ///< CPU per result
  std::int64_t nic_ps = 0;            ///< between the host's memory and its link, in each direction
  std::int64_t link_ps = 200'000;     ///< of a wire with the MAC and PHY at its ends
  std::int64_t cycle_ps = 6'400;      ///< of the switch's clock
  std::int32_t beat_bytes = 8;        ///< that a port moves in a cycle
  std::int32_t up_cycles = 1;         ///< of a contribution, beside the next two
  std::int32_t level_cycles = 1;      ///< per level of the tree of operators over the ports
  std::int32_t beat_cycles = 1;       ///< per beat of the operand: of the tag, which goes in front
  std::int32_t down_cycles = 1;       ///< of a result, which is passed on as it is
};

/// A tree or fat tree. No levels: one switch that joins all.
struct Topology {
  std::int64_t hop_latency_ps = 0;  ///< per switch after the first
  std::vector<Level> levels;
};

struct Node {
  std::int32_t cores = 1024;
  std::int32_t ranks = 1;  ///< ranks placed on a node unless asked otherwise
  /// From when a rank waits to when the next one of its core looks whether it can go on, where
  /// ranks share cores. Zero: they never do.
  std::int64_t switch_ps = 0;
  /// So many nodes are processes of one host and share its cores: a virtual cluster.
  std::int32_t nodes_per_host = 1;
  /// The reader's CPU time per message between nodes, and per byte of it, where ranks share cores:
  /// what the kernel does, which elsewhere is hidden behind the writer's. So much more of what has
  /// left the cache when its reader's turn comes, for more bytes than backlog_bytes wait for its
  /// core.
  std::int64_t shared_ps = 0;
  std::int64_t shared_byte_fs = 0;
  std::int64_t backlog_bytes = 0;
  std::int64_t backlog_byte_fs = 0;
};

struct Machine {
  std::string name = "default";
  Network network;
  Bus bus;
  OneSided one_sided;
  TwoSided two_sided;
  Memory memory;
  SharedMemory shared_memory;
  Datagram datagram;
  Multicast multicast;
  InSwitch in_switch;
  Topology topology;
  Node node;
};

}  // namespace carillon::machine
