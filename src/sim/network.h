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
  /// `places`, if not null: where a node's NIC and bus are, which are not there from the beginning.
  Network(const machine::Machine& machine, std::int32_t nodes,
          const HugeArray<std::uint32_t>* places)
      : machine_(machine),
        has_bus_(machine.bus.per_message_ps > 0 || machine.bus.per_byte_fs > 0),
        has_levels_(!machine.topology.levels.empty()),
        places_(places),
        nics_(places != nullptr ? 1 : static_cast<std::size_t>(nodes),
              static_cast<std::size_t>(nodes) + 1),
        buses_(has_bus_ ? nics_.size() : 0),
        memories_(machine.memory.node_byte_fs > 0 ? static_cast<std::size_t>(nodes) : 0) {}

  /// The place, at most one after those there are, is another node's from now on.
  void renew(std::uint32_t place) {
    if (place == nics_.size()) {
      nics_.add();
      if (has_bus_) buses_.emplace_back();
      return;
    }
    nics_[place] = {};
    if (has_bus_) buses_[place] = {};
  }

  /// From when, at the earliest `now`, the node's NIC takes another request.
  std::int64_t room(std::int32_t node, std::int64_t now) {
    Nic& nic = nic_of(node);
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
    Nic& nic = nic_of(node);
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
    return machine::land(machine_, &nic_of(node).lanes, bus_of(node), time,
                         costs.by_levels.front());
  }

  /// A multicast that is at the node, or is leaving it, at `time`: when one more process attached
  /// to its group has a copy. The NIC makes them one after the other.
  std::int64_t copy_out(std::int32_t node, std::int64_t time, const TransferTable::Costs& costs) {
    Nic& nic = nic_of(node);
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

  /// The NIC at that place, or of that node.
  [[gnu::always_inline]] void prefetch(std::uint32_t place) const {
    __builtin_prefetch(&nics_[place]);
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
  [[nodiscard]] std::size_t place_of(std::int32_t node) const {
    const auto at = static_cast<std::size_t>(node);
    return places_ != nullptr ? (*places_)[at] : at;
  }
  Nic& nic_of(std::int32_t node) { return nics_[place_of(node)]; }
  machine::Lanes* bus_of(std::int32_t node) { return has_bus_ ? &buses_[place_of(node)] : nullptr; }

  const machine::Machine& machine_;
  bool has_bus_, has_levels_;
  const HugeArray<std::uint32_t>* places_;
  HugeArray<Nic> nics_;
  std::vector<machine::Lanes> buses_;
  std::vector<Memory> memories_;
  std::vector<std::int64_t> crossings_;  // into each NUMA domain: busy until
};

}  // namespace carillon::sim
