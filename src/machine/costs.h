// SPDX-License-Identifier: Apache-2.0
//
// What one thing costs on a machine (machine.h says of what it is made): the arithmetic that the
// simulator and the closed forms share.
#pragma once

#include <algorithm>

#include "machine/machine.h"

namespace carillon::machine {

// By a rank's CPU, in picoseconds.

/// A copy of that many bytes: `entries` buffers on both sides together, in `runs` pieces.
constexpr std::int64_t copy_ps(const Memory& memory, std::int64_t bytes, std::int64_t entries = 2,
                               std::int64_t runs = 1) {
  const bool cached = 2 * bytes <= memory.cache_bytes;
  return memory.copy_ps + memory.copy_block_ps * entries + memory.copy_run_ps * runs +
         cost(bytes, cached ? memory.copy_cached_fs : memory.copy_byte_fs);
}

/// The reduction of two operands of that many bytes.
constexpr std::int64_t reduce_ps(const Memory& memory, std::int64_t bytes) {
  const bool cached = 3 * bytes <= memory.cache_bytes;
  return memory.reduce_ps + cost(bytes, cached ? memory.reduce_cached_fs : memory.reduce_byte_fs);
}

/// A put or signal between nodes, until the NIC has been told. `registered`: the NIC can read the
/// payload where it is.
constexpr std::int64_t put_ps(const Machine& m, std::int64_t bytes, bool registered) {
  std::int64_t payload = 0;
  if (bytes > 0 && bytes <= m.one_sided.inline_bytes) {
    payload = cost(bytes, m.one_sided.inline_byte_fs);
  } else if (bytes > 0 && m.one_sided.stage_puts && !registered) {
    payload = copy_ps(m.memory, bytes);
  }
  return m.network.send_overhead_ps + m.one_sided.post_ps + m.one_sided.doorbell_ps + payload;
}

/// A wait between nodes, from when the message is there.
constexpr std::int64_t wait_ps(const Machine& m) {
  return m.network.recv_overhead_ps + m.one_sided.poll_ps;
}

/// A send of an eager message, until the NIC has been told.
constexpr std::int64_t send_ps(const Machine& m, std::int64_t bytes) {
  const bool copied = m.two_sided.copy_in && bytes > 0;
  return m.network.send_overhead_ps + m.two_sided.post_ps + (copied ? copy_ps(m.memory, bytes) : 0);
}

/// A recv posts its receive first (two_sided.post_ps); this is from when an eager message is there.
constexpr std::int64_t recv_ps(const Machine& m, std::int64_t bytes) {
  const bool copied = m.two_sided.copy_out && bytes > 0;
  return m.network.recv_overhead_ps + m.two_sided.match_ps +
         (copied ? copy_ps(m.memory, bytes) : 0);
}

// Between two nodes, in picoseconds.

/// How long n bytes keep a NIC busy: the NIC's own time, or the bus' where bytes pass both at once.
constexpr std::int64_t pass_ps(const Machine& m, std::int64_t bytes) {
  const std::int64_t nic = cost(bytes, m.network.per_byte_fs);
  return m.bus.cut_through ? std::max(nic, cost(bytes, m.bus.per_byte_fs)) : nic;
}

/// What the writer's NIC takes beside the bytes, for lists and fragments.
constexpr std::int64_t pieces_ps(const Machine& m, std::int64_t bytes, std::int64_t entries = 1) {
  const std::int64_t fragments = bytes == 0 ? 1 : (bytes - 1) / m.network.fragment_bytes + 1;
  return m.network.gather_ps * (entries - 1) + m.network.fragment_ps * (fragments - 1);
}

/// One direction of a node's NIC, and of its bus where bytes are stored between the two.
struct Lane {
  std::int64_t nic_free_ps = 0;  ///< when it can take the next message, the gap included
  std::int64_t bus_free_ps = 0;
};

/// The writer's side: from when the NIC was told to when the last byte has left.
constexpr std::int64_t inject(const Machine& m, Lane* lane, std::int64_t told_ps,
                              std::int64_t bytes, std::int64_t entries = 1) {
  std::int64_t start = told_ps + m.bus.per_message_ps;
  if (!m.bus.cut_through) {
    start = std::max(told_ps, lane->bus_free_ps) + m.bus.per_message_ps +
            cost(bytes, m.bus.per_byte_fs);
    lane->bus_free_ps = start;
  }
  const std::int64_t end =
      std::max(start, lane->nic_free_ps) + pass_ps(m, bytes) + pieces_ps(m, bytes, entries);
  lane->nic_free_ps = end + m.network.gap_ps;
  return end;
}

/// The reader's side: from when the last byte has come to the NIC at the earliest to when the
/// reader can see the message. Call in the order of arrival.
constexpr std::int64_t land(const Machine& m, Lane* lane, std::int64_t arrival_ps,
                            std::int64_t bytes) {
  const std::int64_t end = std::max(arrival_ps, lane->nic_free_ps + pass_ps(m, bytes));
  lane->nic_free_ps = end + m.network.gap_ps;
  if (m.bus.cut_through) return end + m.bus.per_message_ps;
  lane->bus_free_ps =
      std::max(end, lane->bus_free_ps) + m.bus.per_message_ps + cost(bytes, m.bus.per_byte_fs);
  return lane->bus_free_ps;
}

}  // namespace carillon::machine
