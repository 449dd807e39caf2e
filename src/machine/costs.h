// SPDX-License-Identifier: Apache-2.0
//
// What single steps cost on a machine, for the simulator and the closed forms alike: there is no
// other place that adds up cost terms.
#pragma once

#include <algorithm>

#include "base/lent_messages.h"
#include "base/list_requests.h"
#include "machine/machine.h"

namespace carillon::machine {

/// A copy of `bytes`: `blocks` entries in its two lists, `runs` contiguous pieces.
constexpr std::int64_t copy_ps(const Memory& memory, std::int64_t bytes, std::int64_t blocks = 2,
                               std::int64_t runs = 1) {
  const bool cached = 2 * bytes <= memory.cache_bytes;
  return at_most_last(memory.copy_ps + blocks * memory.copy_block_ps + runs * memory.copy_run_ps +
                      cost(bytes, cached ? memory.copy_cached_fs : memory.copy_byte_fs));
}

/// A reduction with a result of `bytes`.
constexpr std::int64_t reduce_ps(const Memory& memory, std::int64_t bytes) {
  const bool cached = 3 * bytes <= memory.cache_bytes;
  return memory.reduce_ps + cost(bytes, cached ? memory.reduce_cached_fs : memory.reduce_byte_fs);
}

/// How long a copy or reduction of `bytes` keeps its node's memory busy.
constexpr std::int64_t memory_ps(const Memory& memory, std::int64_t bytes) {
  return cost(bytes, memory.node_byte_fs);
}

/// A message between nodes: its length, the entries of the list it is gathered from (0 of an
/// empty one), and whether all of them are in registered memory (OneSided::stage_puts).
struct Transfer {
  std::int64_t bytes = 0;
  std::int32_t entries = 1;
  bool registered = false;
};

/// The copy of a payload into one contiguous buffer, or out of it; nothing for an empty one.
constexpr std::int64_t pack_ps(const Machine& m, Transfer transfer) {
  if (transfer.bytes == 0) return 0;
  return copy_ps(m.memory, transfer.bytes, transfer.entries + 1, transfer.entries);
}

/// How many requests a message's list takes, where lists are cut.
constexpr std::int64_t requests(const Machine& m, Transfer transfer) {
  const bool is_cut = m.network.cuts_lists && transfer.bytes > m.one_sided.inline_bytes;
  return is_cut ? list_requests(transfer.entries, m.network.max_entries) : 1;
}
/// Whether a message's list has to be packed, whatever else the machine wants.
constexpr bool is_too_long(const Machine& m, Transfer transfer) {
  return transfer.entries > m.network.max_entries && requests(m, transfer) == 1;
}

/// Whether a put's payload is copied into a buffer first: because the machine wants it so, or
/// because the list is longer than the NIC takes.
constexpr bool is_packed(const Machine& m, Transfer put) {
  if (put.bytes <= m.one_sided.inline_bytes) return false;
  return (m.one_sided.stage_puts && !put.registered) || is_too_long(m, put);
}

/// What of put_ps is copying.
constexpr std::int64_t put_copy_ps(const Machine& m, Transfer put) {
  return is_packed(m, put) ? pack_ps(m, put) : 0;
}

constexpr std::int64_t request_ps(const Machine& m) {
  return m.network.send_overhead_ps + m.one_sided.post_ps + m.one_sided.doorbell_ps;
}

/// The writer's CPU time of a put or signal to another node.
constexpr std::int64_t put_ps(const Machine& m, Transfer put) {
  std::int64_t ps = repeated(requests(m, put), request_ps(m)) + put_copy_ps(m, put);
  if (put.bytes <= m.one_sided.inline_bytes) ps += cost(put.bytes, m.one_sided.inline_byte_fs);
  return at_most_last(ps + cost(put.bytes, m.network.send_byte_fs));
}

/// The reader's CPU time of a wait, once the message is there.
constexpr std::int64_t wait_ps(const Machine& m) {
  return m.network.recv_overhead_ps + m.one_sided.poll_ps;
}

constexpr bool is_eager(const Machine& m, std::int64_t bytes) {
  return bytes <= m.two_sided.eager_bytes;
}

/// Whether the NIC reads a message's list as it is.
constexpr bool is_gathered(const Machine& m, Transfer transfer, bool two_sided) {
  const bool packed =
      two_sided ? is_eager(m, transfer.bytes) && m.two_sided.copy_in : is_packed(m, transfer);
  return !packed && !is_too_long(m, transfer);
}

/// What of send_ps is copying.
constexpr std::int64_t send_copy_ps(const Machine& m, Transfer send) {
  const bool copied = (is_eager(m, send.bytes) && m.two_sided.copy_in) || is_too_long(m, send);
  return copied ? pack_ps(m, send) : 0;
}

/// The writer's CPU time of a send to another node, rendezvous not included. What goes before the
/// last request of a list is put.
constexpr std::int64_t send_ps(const Machine& m, Transfer send) {
  return at_most_last(repeated(requests(m, send) - 1, request_ps(m)) + m.network.send_overhead_ps +
                      m.two_sided.post_ps + send_copy_ps(m, send) +
                      cost(send.bytes, m.network.send_byte_fs));
}

/// The reader's CPU time of a recv: before it begins to wait, and once the payload is there.
constexpr std::int64_t recv_post_ps(const Machine& m) { return m.two_sided.post_ps; }
constexpr std::int64_t recv_copy_ps(const Machine& m, Transfer recv) {
  const bool copied =
      (is_eager(m, recv.bytes) && m.two_sided.copy_out) || recv.entries > m.network.max_entries;
  return copied ? pack_ps(m, recv) : 0;
}
constexpr std::int64_t recv_ps(const Machine& m, Transfer recv) {
  return m.network.recv_overhead_ps + m.two_sided.match_ps + recv_copy_ps(m, recv);
}

/// What it costs more to write a list into a slot than one range of its length.
constexpr std::int64_t scattered_ps(const Memory& memory, Transfer transfer) {
  const std::int64_t more = transfer.entries > 1 ? transfer.entries - 1 : 0;
  return more * (memory.copy_block_ps + memory.copy_run_ps);
}

/// CPU time of a message to a rank of the same node, and of waiting for one that is there. recv
/// copies it out, besides (pack_ps).
constexpr std::int64_t local_put_ps(const Machine& m, Transfer put) {
  const SharedMemory& shm = m.shared_memory;
  const std::int64_t ps =
      put.bytes <= shm.line_bytes ? shm.line_ps : shm.write_ps + cost(put.bytes, shm.per_byte_fs);
  return shm.overhead_ps + ps + scattered_ps(m.memory, put);
}
constexpr std::int64_t local_wait_ps(const Machine& m) { return m.shared_memory.overhead_ps; }

/// Whether ranks of a node can read each other's private memory. CPU time to say where a message
/// is, and to read it there.
constexpr bool lends(const Machine& m) { return m.shared_memory.lent_byte_fs > 0; }
constexpr std::int64_t lend_ps(const Machine& m) {
  return m.shared_memory.overhead_ps + m.shared_memory.line_ps;
}
constexpr std::int64_t read_lent_ps(const Machine& m, std::int64_t bytes) {
  return m.shared_memory.lent_ps + cost(bytes, m.shared_memory.lent_byte_fs);
}
/// How a message of the node is taken: copied or reduced, one by one or as pieces of a stream.
struct Taking {
  bool reduces = false, streamed = false;
};
/// Whether it is quicker lent. What is reduced is read first.
constexpr bool lending_pays(const Machine& m, std::int64_t bytes, Taking taking) {
  const SharedMemory& shm = m.shared_memory;
  const std::int64_t written = shm.write_ps + cost(bytes, shm.per_byte_fs);
  const std::int64_t reduced = taking.reduces ? reduce_ps(m.memory, bytes) : 0;
  const std::int64_t taken = taking.reduces ? reduced : copy_ps(m.memory, bytes);
  return read_lent_ps(m, bytes) + reduced < by_shared_memory(written, taken, taking.streamed);
}

/// How long a message of another NUMA domain keeps the reader, and its domain's way there, busy.
constexpr std::int64_t crossing_ps(const Machine& m, std::int64_t bytes) {
  return cost(bytes, m.shared_memory.cross_byte_fs);
}

/// What of a message between nodes its reader's CPU does besides, where ranks share cores;
/// `waiting` bytes, these among them, have been sent and not been read.
constexpr std::int64_t shared_read_ps(const Machine& m, std::int64_t bytes, std::int64_t waiting) {
  const std::int64_t cold = std::clamp<std::int64_t>(waiting - m.node.backlog_bytes, 0, bytes);
  return at_most_last(m.node.shared_ps + cost(bytes, m.node.shared_byte_fs) +
                      cost(cold, m.node.backlog_byte_fs));
}

/// Datagrams that a multicast's payload takes.
constexpr std::int64_t datagrams(const Machine& m, std::int64_t bytes) {
  return bytes == 0 ? 1 : (bytes - 1) / m.datagram.mtu_bytes + 1;
}

/// The writer's CPU time of a multicast, which is copied to where it stays until all have it; and a
/// reader's to receive it, once it is there: it came in datagrams, and is copied out of them.
constexpr std::int64_t multicast_ps(const Machine& m, Transfer message) {
  return m.network.send_overhead_ps + datagrams(m, message.bytes) * m.datagram.fragment_ps +
         pack_ps(m, message) + cost(message.bytes, m.network.send_byte_fs);
}
constexpr std::int64_t receive_ps(const Machine& m, Transfer message) {
  return m.network.recv_overhead_ps + datagrams(m, message.bytes) * m.datagram.fragment_ps +
         pack_ps(m, message);
}

/// How long a node's NIC takes to give a multicast to one more of its processes.
constexpr std::int64_t deliver_ps(const Machine& m, Transfer message) {
  return datagrams(m, message.bytes) * m.datagram.deliver_ps;
}

/// A reduction in switches of more packets is refused: the simulator's messages have numbers.
inline constexpr std::int64_t kMostPackets = std::int64_t{1} << 27;
/// Packets of a reduction of `bytes` in switches; one of nothing is a packet, too.
constexpr std::int64_t packets(const InSwitch& s, std::int64_t bytes) {
  return bytes == 0 ? 1 : (bytes - 1) / s.operand_bytes + 1;
}
/// The operand of packet `number` of them.
constexpr std::int64_t operand_bytes(const InSwitch& s, std::int64_t bytes, std::int64_t number) {
  return std::min(s.operand_bytes, bytes - number * s.operand_bytes);
}

/// A host's CPU time for a packet, and for a result.
constexpr std::int64_t contribute_ps(const Machine& m, std::int64_t operand) {
  return m.in_switch.send_ps + pack_ps(m, {.bytes = operand});
}
constexpr std::int64_t take_result_ps(const Machine& m, std::int64_t operand) {
  return m.in_switch.receive_ps + pack_ps(m, {.bytes = operand});
}

/// Of a host's NIC and of a link, one after the other.
constexpr std::int64_t to_switch_ps(const InSwitch& s) { return s.nic_ps + s.link_ps; }

constexpr std::int64_t beats(const InSwitch& s, std::int64_t bytes) {
  return (bytes + s.beat_bytes - 1) / s.beat_bytes;
}
/// In a switch at line rate, whose ports, tags and operators each take a beat a cycle: from when
/// all contributions are there to the first byte of what it makes of them.
constexpr std::int64_t combine_ps(const InSwitch& s, std::int64_t operand) {
  std::int64_t levels = 0;
  while (std::int64_t{1} << levels < s.ports) ++levels;
  return s.cycle_ps * (s.up_cycles + levels * s.level_cycles + beats(s, operand) * s.beat_cycles);
}
constexpr std::int64_t forward_ps(const InSwitch& s) { return s.cycle_ps * s.down_cycles; }
/// How long a packet keeps a switch's port, and its way to there, busy.
constexpr std::int64_t packet_ps(const Machine& m, std::int64_t operand) {
  const InSwitch& s = m.in_switch;
  const std::int64_t bytes = s.header_bytes + operand;
  return std::max(s.cycle_ps * beats(s, bytes), cost(bytes, m.network.per_byte_fs));
}

/// How far apart two nodes are: how many levels a message between them goes up beyond the first
/// switch.
inline std::int32_t levels_between(const Topology& topology, std::int64_t a, std::int64_t b) {
  std::int32_t level = 0;
  for (const Level& each : topology.levels) {
    a /= each.radix;
    b /= each.radix;
    if (a == b) return level;
    ++level;
  }
  return level;  // above the last level named, one switch joins all
}

/// From the last byte out of one NIC to the last byte in another, `levels` up.
constexpr std::int64_t wire_latency_ps(const Machine& m, std::int32_t levels) {
  return m.network.latency_ps + 2 * levels * m.topology.hop_latency_ps;
}

/// The same of a multicast: the switches make the copies on the way.
constexpr std::int64_t multicast_latency_ps(const Machine& m, std::int32_t levels) {
  return wire_latency_ps(m, levels) + (levels + 1) * m.multicast.replicate_ps;
}

/// How long the writer's NIC is busy with a message's bytes, if it goes `levels` up.
inline std::int64_t wire_ps(const Machine& m, Transfer transfer, std::int32_t levels,
                            bool gathers) {
  std::int64_t per_byte_fs = m.network.per_byte_fs;
  for (std::int32_t i = 0; i < levels; ++i) {
    const auto level = static_cast<std::size_t>(i);
    per_byte_fs = thousandths(per_byte_fs, m.topology.levels[level].oversubscription_permille);
  }
  const std::int64_t fragments =
      transfer.bytes == 0 ? 1 : (transfer.bytes - 1) / m.network.fragment_bytes + 1;
  const std::int64_t parts = gathers ? requests(m, transfer) : 1;
  const std::int64_t entries = gathers ? std::max(transfer.entries, 1) : 1;
  return at_most_last(cost(transfer.bytes, per_byte_fs) + (entries - parts) * m.network.gather_ps +
                      (parts - 1) * m.network.gap_ps +
                      repeated(fragments - 1, m.network.fragment_ps));
}

/// A message that finds everything idle: from when the writer's CPU has posted it to when the
/// reader can see it, one switch away.
inline std::int64_t flight_ps(const Machine& m, Transfer transfer, bool gathers = true) {
  const std::int64_t wire = wire_ps(m, transfer, 0, gathers);
  const std::int64_t bus = cost(transfer.bytes, m.bus.per_byte_fs);
  const std::int64_t latency = m.network.latency_ps + 2 * m.bus.per_message_ps;
  return latency + (m.bus.cut_through ? std::max(wire, bus) : bus + wire + bus);
}

}  // namespace carillon::machine
