// SPDX-License-Identifier: Apache-2.0
//
// A node's NIC and bus, where messages wait for one another: as the simulator has them
// (sim/network.h), for one rank per node and one switch.
#pragma once

#include <vector>

#include "machine/costs.h"

namespace carillon::machine {

/// Of one node; busy until those times.
struct Port {
  std::int64_t nic_out = INT64_MIN / 2, nic_in = INT64_MIN / 2;
  std::int64_t bus_out = INT64_MIN / 2, bus_in = INT64_MIN / 2;
  std::int64_t last_arrival = INT64_MIN / 2;
  std::vector<std::int64_t> waiting;  ///< when messages that had to wait for the NIC began

  /// From when, at the earliest `now`, the NIC takes another request.
  [[nodiscard]] std::int64_t room(const Machine& m, std::int64_t now) const {
    const auto depth = static_cast<std::size_t>(m.network.send_queue);
    return waiting.size() < depth ? now : std::max(now, waiting[waiting.size() - depth]);
  }
};

/// The writer's side: from when the NIC was told to when the last byte has left.
inline std::int64_t inject(const Machine& m, Port* port, std::int64_t told_ps, Transfer transfer) {
  const std::int64_t bus_begin = std::max(told_ps, port->bus_out);
  const std::int64_t bus_end =
      bus_begin + m.bus.per_message_ps + cost(transfer.bytes, m.bus.per_byte_fs);
  port->bus_out = bus_end;
  const std::int64_t ready = m.bus.cut_through ? bus_begin + m.bus.per_message_ps : bus_end;
  const std::int64_t begin = std::max(ready, port->nic_out);
  if (begin > ready) port->waiting.push_back(begin);
  const std::int64_t end = std::max(begin + wire_ps(m, transfer, 0, true), bus_end);
  port->nic_out = end + m.network.gap_ps;
  return end;
}

/// The reader's side: from when the last byte could come to the NIC to when the reader can see the
/// message. Call in the order of arrival.
inline std::int64_t land(const Machine& m, Port* port, std::int64_t arrival_ps,
                         std::int64_t bytes) {
  const std::int64_t wire = wire_ps(m, {.bytes = bytes}, 0, false);
  const std::int64_t bus = cost(bytes, m.bus.per_byte_fs);
  const std::int64_t pace = m.bus.cut_through ? std::max(wire, bus) : wire;
  const std::int64_t end = std::max(arrival_ps, port->nic_in + pace);
  port->nic_in = end + m.network.gap_ps;
  std::int64_t& busy = m.bus.half_duplex ? port->bus_out : port->bus_in;
  busy = (m.bus.cut_through ? std::max(end, busy + bus) : std::max(end, busy) + bus) +
         m.bus.per_message_ps;
  return busy;
}

}  // namespace carillon::machine
