// SPDX-License-Identifier: Apache-2.0
#include "sim/switches.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace carillon::sim {

Switches::Switches(const machine::Machine& machine, std::span<const Host> hosts)
    : machine_(machine), members_(hosts.size()) {
  std::vector<std::uint32_t> order(hosts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return hosts[a].place < hosts[b].place; });
  std::vector<std::int64_t> places;
  for (const std::uint32_t host : order) {
    members_[host].id = hosts[host].id;
    places.push_back(hosts[host].place);
  }
  std::vector<std::uint32_t> parents = add_level(&places);
  for (std::size_t i = 0; i < order.size(); ++i) members_[order[i]].leaf = parents[i];
  while (places.size() > 1) {
    const std::size_t below = switches_.size() - places.size();
    parents = add_level(&places);
    for (std::size_t i = 0; i < parents.size(); ++i) switches_[below + i].parent = parents[i];
  }
}

// The switches that join what is at these places, which ascend: the parent of each. Then theirs.
std::vector<std::uint32_t> Switches::add_level(std::vector<std::int64_t>* places) {
  std::vector<std::int64_t> above;
  std::vector<std::uint32_t> parents;
  for (const std::int64_t each : *places) {
    const std::int64_t place = each / machine_.in_switch.ports;
    if (above.empty() || above.back() != place) {
      above.push_back(place);
      switches_.emplace_back();
    }
    ++switches_.back().children;
    parents.push_back(static_cast<std::uint32_t>(switches_.size() - 1));
  }
  *places = std::move(above);
  return parents;
}

// Whether that was the last child with this packet; then `last` is what the switch waited for.
bool Switches::arrive(Switch* at, std::int64_t number, const Packet& packet, Packet* last) {
  const auto place = at->head + static_cast<std::size_t>(number - at->first);
  if (place >= at->slots.size()) at->slots.resize(place + 1);
  Slot& slot = at->slots[place];
  const std::int64_t operand = std::max(slot.last.operand, packet.operand);
  if (slot.arrived == 0 || packet.is_later(slot.last)) slot.last = packet;
  slot.last.operand = operand;
  if (++slot.arrived < at->children) return false;
  *last = slot.last;
  slot = {};
  ++at->first;
  ++at->head;
  if (at->head == at->slots.size()) {
    at->slots.clear();
    at->head = 0;
  } else if (at->head > 64 && 2 * at->head > at->slots.size()) {
    at->slots.erase(at->slots.begin(), at->slots.begin() + static_cast<std::ptrdiff_t>(at->head));
    at->head = 0;
  }
  return true;
}

std::optional<Switches::Packet> Switches::contribute(std::size_t host, Packet packet) {
  const std::int64_t number = members_[host].packets++;
  for (std::uint32_t at = members_[host].leaf;; at = switches_[at].parent) {
    Switch& here = switches_[at];
    if (!arrive(&here, number, packet, &packet)) return std::nullopt;
    const std::int64_t ready =
        packet.time + machine::combine_ps(machine_.in_switch, packet.operand);
    const std::int64_t end =
        std::max(ready, here.up_free) + machine::packet_ps(machine_, packet.operand);
    here.up_free = end + machine_.network.gap_ps;
    packet.time = end + machine_.in_switch.link_ps;
    if (at + 1 < switches_.size()) continue;
    send_down(packet);
    return packet;
  }
}

// Parents before their children.
void Switches::send_down(const Packet& result) {
  const machine::InSwitch& costs = machine_.in_switch;
  const std::int64_t packet_ps = machine::packet_ps(machine_, result.operand);
  const std::int64_t gap_ps = machine_.network.gap_ps;
  switches_.back().down_end = result.time;
  for (std::size_t i = switches_.size() - 1; i-- > 0;) {
    Switch& here = switches_[i];
    const std::int64_t ready = switches_[here.parent].down_end + machine::forward_ps(costs);
    const std::int64_t begin = std::max(ready, here.down_end - costs.link_ps + gap_ps);
    here.down_end = begin + packet_ps + costs.link_ps;
  }
}

}  // namespace carillon::sim
