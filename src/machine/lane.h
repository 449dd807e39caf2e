// SPDX-License-Identifier: Apache-2.0
//
// One direction of a node's NIC, where messages wait for one another.
#pragma once

#include "machine/costs.h"

namespace carillon::machine {

/// When NIC and bus can take the next message.
struct Lane {
  std::int64_t nic_free_ps = 0;  ///< the gap included
  std::int64_t bus_free_ps = 0;
};

/// The writer's side: from when the NIC was told to when the last byte has left.
inline std::int64_t inject(const Machine& m, Lane* lane, std::int64_t told_ps, Transfer transfer) {
  const std::int64_t wire = wire_ps(m, transfer, 0, true);
  const std::int64_t bus = cost(transfer.bytes, m.bus.per_byte_fs);
  std::int64_t start = told_ps + m.bus.per_message_ps;
  if (!m.bus.cut_through) {
    start = std::max(told_ps, lane->bus_free_ps) + m.bus.per_message_ps + bus;
    lane->bus_free_ps = start;
  }
  const std::int64_t busy = m.bus.cut_through ? std::max(wire, bus) : wire;
  const std::int64_t end = std::max(start, lane->nic_free_ps) + busy;
  lane->nic_free_ps = end + m.network.gap_ps;
  return end;
}

/// The reader's side: from when the last byte could come to the NIC to when the reader can see the
/// message. Call in the order of arrival.
inline std::int64_t land(const Machine& m, Lane* lane, std::int64_t arrival_ps,
                         std::int64_t bytes) {
  const std::int64_t wire = wire_ps(m, {.bytes = bytes}, 0, false);
  const std::int64_t bus = cost(bytes, m.bus.per_byte_fs);
  const std::int64_t busy = m.bus.cut_through ? std::max(wire, bus) : wire;
  const std::int64_t end = std::max(arrival_ps, lane->nic_free_ps + busy);
  lane->nic_free_ps = end + m.network.gap_ps;
  if (m.bus.cut_through) return end + m.bus.per_message_ps;
  lane->bus_free_ps = std::max(end, lane->bus_free_ps) + m.bus.per_message_ps + bus;
  return lane->bus_free_ps;
}

}  // namespace carillon::machine
