// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a node share: its NIC, its bus and its memory, each busy until some time. First
// come, first served, in the order of the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/port.h"
#include "sim/huge.h"
#include "sim/part.h"

namespace carillon::sim {

class Network {
 public:
  Network(const machine::Machine& machine, std::int32_t nodes)
      : machine_(machine),
        has_bus_(machine.bus.per_message_ps > 0 || machine.bus.per_byte_fs > 0),
        has_levels_(!machine.topology.levels.empty()),
        nics_(static_cast<std::size_t>(nodes)),
        buses_(has_bus_ ? nics_.size() : 0),
        memories_(machine.memory.node_byte_fs > 0 ? nics_.size() : 0) {}

  /// From when, at the earliest `now`, the node's NIC takes another request.
  std::int64_t room(std::int32_t node, std::int64_t now) {
    Nic& nic = nics_[static_cast<std::size_t>(node)];
    return nic.queue ? nic.queue->room(machine_, now) : now;
  }

  /// How far up a message between the nodes goes.
  [[nodiscard]] std::int32_t levels(std::int32_t node, std::int32_t peer) const {
    return has_levels_ ? machine::levels_between(machine_.topology, node, peer) : 0;
  }

  /// A message posted at `now`: when its last byte is at the other node.
  std::int64_t send(std::int32_t node, std::int32_t peer, std::int64_t now,
                    const TransferTable::Costs& costs) {
    const std::int32_t up = levels(node, peer);
    return leave(node, up, now, costs) + machine::wire_latency_ps(machine_, up);
  }

  /// A message that goes so many levels up: when its last byte has left the node.
  std::int64_t leave(std::int32_t node, std::int32_t levels, std::int64_t now,
                     const TransferTable::Costs& costs) {
    Nic& nic = nics_[static_cast<std::size_t>(node)];
    const machine::Injection sent = machine::inject(
        machine_, &nic.lanes, bus_of(node), now, costs.by_levels[static_cast<std::size_t>(levels)]);
    if (sent.waited) {
      if (!nic.queue) nic.queue = std::make_unique<machine::SendQueue>();
      nic.queue->add(sent.begin_ps);
    }
    return sent.end_ps;
  }

  /// A message whose last byte could be there at `time`: when the reader can see it.
  std::int64_t receive(std::int32_t node, std::int64_t time, const TransferTable::Costs& costs) {
    return machine::land(machine_, &nics_[static_cast<std::size_t>(node)].lanes, bus_of(node), time,
                         costs.by_levels.front());
  }

  /// A multicast that is at the node, or is leaving it, at `time`: when one more process attached
  /// to its group has a copy. The NIC makes them one after the other.
  std::int64_t copy_out(std::int32_t node, std::int64_t time, const TransferTable::Costs& costs) {
    Nic& nic = nics_[static_cast<std::size_t>(node)];
    nic.lanes.in = std::max(time, nic.lanes.in) + costs.deliver_ps;
    return machine::to_memory(machine_, bus_of(node), nic.lanes.in, costs.by_levels.front());
  }

  [[nodiscard]] bool shares_memory() const { return !memories_.empty(); }

  /// Work of `ps` on the node's memory from `begin`, which would end at `end`: when it does.
  std::int64_t use_memory(std::int32_t node, std::int64_t begin, std::int64_t end,
                          std::int64_t ps) {
    if (memories_.empty() || ps == 0) return end;
    Memory& memory = memories_[static_cast<std::size_t>(node)];
    memory.busy = std::max(memory.busy, begin) + ps;
    memory.work_ps += ps;
    return std::max(end, memory.busy);
  }

  /// A rank of the domain reads, from `begin` on, what another domain has written, which takes its
  /// way there `ps`: when it has.
  std::int64_t cross(std::int32_t domain, std::int64_t begin, std::int64_t ps) {
    const auto at = static_cast<std::size_t>(domain);
    if (crossings_.size() <= at) crossings_.resize(at + 1);
    crossings_[at] = std::max(crossings_[at], begin) + ps;
    return crossings_[at];
  }

  /// For how long, until `now`, the node's memory has been busy. All that began before is known.
  [[nodiscard]] std::int64_t memory_busy_ps(std::int32_t node, std::int64_t now) const {
    if (memories_.empty()) return 0;
    const Memory& memory = memories_[static_cast<std::size_t>(node)];
    return memory.work_ps - std::max<std::int64_t>(memory.busy - now, 0);
  }

  [[gnu::always_inline]] void prefetch(std::int32_t node) const {
    __builtin_prefetch(&nics_[static_cast<std::size_t>(node)]);
  }

  /// How long a release takes back to the writer.
  [[nodiscard]] std::int64_t release_ps(std::int32_t node, std::int32_t peer) const {
    return machine::wire_latency_ps(machine_, levels(node, peer));
  }

 private:
  struct Nic {
    machine::Lanes lanes;
    std::unique_ptr<machine::SendQueue> queue;
  };
  struct Memory {
    std::int64_t busy = 0;     // until
    std::int64_t work_ps = 0;  // in all
  };
  machine::Lanes* bus_of(std::int32_t node) {
    return has_bus_ ? &buses_[static_cast<std::size_t>(node)] : nullptr;
  }

  const machine::Machine& machine_;
  bool has_bus_, has_levels_;
  HugeArray<Nic> nics_;
  std::vector<machine::Lanes> buses_;
  std::vector<Memory> memories_;
  std::vector<std::int64_t> crossings_;  // into each NUMA domain: busy until
};

}  // namespace carillon::sim
