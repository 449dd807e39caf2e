// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a node share: its NIC, its bus and its memory, each busy until some time. First
// come, first served, in the order of the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

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
    if (!nic.waiting) return now;
    std::vector<std::int64_t>& begins = nic.waiting->begins;
    std::size_t& head = nic.waiting->head;
    while (head < begins.size() && begins[head] <= now) ++head;
    if (head == begins.size()) {
      begins.clear();
      head = 0;
    }
    const auto depth = static_cast<std::size_t>(machine_.network.send_queue);
    return begins.size() - head < depth ? now : begins[begins.size() - depth];
  }

  /// A message posted at `now`: when its last byte is at the other node.
  std::int64_t send(std::int32_t node, std::int32_t peer, std::int64_t now,
                    const TransferTable::Costs& costs) {
    Nic& nic = nics_[static_cast<std::size_t>(node)];
    const std::int32_t levels =
        has_levels_ ? machine::levels_between(machine_.topology, node, peer) : 0;
    std::int64_t ready = now;
    std::int64_t bus_end = now;
    if (has_bus_) {
      Bus& bus = buses_[static_cast<std::size_t>(node)];
      const std::int64_t begin = std::max(now, bus.out);
      bus_end = begin + machine_.bus.per_message_ps + costs.bus_ps;
      bus.out = bus_end;
      ready = machine_.bus.cut_through ? begin + machine_.bus.per_message_ps : bus_end;
    }
    const std::int64_t wire = costs.wire_ps[static_cast<std::size_t>(levels)];
    const std::int64_t begin = std::max(ready, nic.out);
    const std::int64_t end = std::max(begin + wire, bus_end);
    if (begin > ready) wait_for_nic(&nic, begin);
    nic.out = end + machine_.network.gap_ps;
    return end + machine::wire_latency_ps(machine_, levels);
  }

  /// A message whose last byte could be there at `time`: when the reader can see it.
  std::int64_t receive(std::int32_t node, std::int64_t time, const TransferTable::Costs& costs) {
    Nic& nic = nics_[static_cast<std::size_t>(node)];
    const std::int64_t end = std::max(time, nic.in + costs.receive_ps);
    nic.in = end + machine_.network.gap_ps;
    if (!has_bus_) return end;
    Bus& bus = buses_[static_cast<std::size_t>(node)];
    std::int64_t& busy = machine_.bus.half_duplex ? bus.out : bus.in;
    busy = machine_.bus.cut_through ? std::max(end, busy + costs.bus_ps)
                                    : std::max(end, busy) + costs.bus_ps;
    busy += machine_.bus.per_message_ps;
    return busy;
  }

  /// Work on the node's memory from `begin`, which would end at `end`: when it does.
  std::int64_t use_memory(std::int32_t node, std::int64_t begin, std::int64_t end,
                          const TransferTable::Costs& costs) {
    if (memories_.empty()) return end;
    std::int64_t& busy = memories_[static_cast<std::size_t>(node)];
    busy = std::max(busy, begin) + costs.memory_ps;
    return std::max(end, busy);
  }

  [[gnu::always_inline]] void prefetch(std::int32_t node) const {
    __builtin_prefetch(&nics_[static_cast<std::size_t>(node)]);
  }

  /// How long a release takes back to the writer.
  [[nodiscard]] std::int64_t release_ps(std::int32_t node, std::int32_t peer) const {
    const std::int32_t levels =
        has_levels_ ? machine::levels_between(machine_.topology, node, peer) : 0;
    return machine::wire_latency_ps(machine_, levels);
  }

 private:
  // When messages that have been posted begin to be sent; those before `head` have.
  struct Waiting {
    std::vector<std::int64_t> begins;
    std::size_t head = 0;
  };
  struct Nic {
    std::int64_t out = INT64_MIN / 2, in = INT64_MIN / 2;  // busy until
    std::unique_ptr<Waiting> waiting;
  };
  struct Bus {
    std::int64_t out = INT64_MIN / 2, in = INT64_MIN / 2;
  };

  static void wait_for_nic(Nic* nic, std::int64_t begin) {
    if (!nic->waiting) nic->waiting = std::make_unique<Waiting>();
    Waiting& waiting = *nic->waiting;
    if (waiting.head > 64 && waiting.head * 2 > waiting.begins.size()) {
      waiting.begins.erase(waiting.begins.begin(),
                           waiting.begins.begin() + static_cast<std::ptrdiff_t>(waiting.head));
      waiting.head = 0;
    }
    waiting.begins.push_back(begin);
  }

  const machine::Machine& machine_;
  bool has_bus_, has_levels_;
  HugeArray<Nic> nics_;
  std::vector<Bus> buses_;
  std::vector<std::int64_t> memories_;
};

}  // namespace carillon::sim
