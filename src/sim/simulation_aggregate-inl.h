// SPDX-License-Identifier: Apache-2.0
//
// Simulation: reductions in switches, from a leader's packets to their results.
//
//   leader   packet 0, 1, ..., W-1    result 0, packet W, result 1, packet W+1, ...    results
//   switches         | ---- up, all leaders' ---- root ---- down, to all ---- |
//
// The result of packet s is the credit for packet s + W (docs/switch-protocol.md). A leader that
// may send does so before it looks for results: what it does is always in the same order, and only
// how long it waits depends on the others.
#pragma once

#include <algorithm>

#include "sim/simulation.h"

namespace carillon::sim {

/// What a leader does next: send that packet, or take its result.
struct PacketAction {
  bool takes = false;
  std::int64_t packet = 0;
};

inline PacketAction packet_action(std::int64_t done, std::int64_t packets, std::int64_t window) {
  const std::int64_t first = std::min(window, packets);
  if (done < first) return {false, done};
  const std::int64_t after = done - first;
  const std::int64_t rest = packets - first;  // these alternate with results
  if (after >= 2 * rest) return {true, after - rest};
  return {after % 2 == 0, after % 2 == 0 ? after / 2 : first + after / 2};
}

template <bool kFull>
bool Simulation<kFull>::aggregate(std::uint32_t id, StrandState* strand, const Step& step) {
  if (strand->round == 0 && !strand->posting && !begin_aggregate(id)) return false;
  const std::int64_t packets = machine::packets(machine_.in_switch, step.time());
  if (packets > machine::kMostPackets) {
    fail({Code::kUnsupported, "a reduction in switches of so many packets cannot be simulated"});
    return false;
  }
  if (strand->ready > machine::kLastPs) {
    fail({Code::kUnsupported, "a reduction in switches takes longer than can be told"});
    return false;
  }
  const PacketAction next = packet_action(strand->round, packets, machine_.in_switch.window);
  return next.takes ? await_result(id, strand, step, next.packet)
                    : contribute(id, strand, step, next.packet);
}

// The leader's first packet of a reduction.
template <bool kFull>
bool Simulation<kFull>::begin_aggregate(std::uint32_t id) {
  Flight& flight = flight_of(id);
  const Nodes* const nodes = flight.job->call.limits.nodes.get();
  if (machine_.in_switch.ports == 0 || nodes == nullptr) {
    fail({Code::kUnsupported, "machine " + machine_.name + " has no switches that reduce"});
    return false;
  }
  if (!flight.switches) {
    std::vector<Switches::Host> leaders;
    for (std::int32_t node = 0; node < nodes->count(); ++node) {
      const auto leader = static_cast<std::uint32_t>(nodes->members(node).front()) + flight.base;
      leaders.push_back({leader, place_of(leader)});
    }
    flight.switches = std::make_unique<Switches>(machine_, leaders);
  }
  const auto host = nodes->node_of(static_cast<Rank>(id - flight.base));
  if (flight.switches->enter(static_cast<std::size_t>(host))) return true;
  fail({Code::kUnsupported, "a rank with two reductions in switches at once"});
  return false;
}

template <bool kFull>
bool Simulation<kFull>::contribute(std::uint32_t id, StrandState* strand, const Step& step,
                                   std::int64_t packet) {
  const machine::InSwitch& costs = machine_.in_switch;
  const std::int64_t operand =
      step.link == 0 ? 0 : machine::operand_bytes(costs, step.time(), packet);
  if (!strand->posting) {
    const std::int64_t begin = strand->ready;
    const std::int64_t end = network_.use_memory(
        node_, begin,
        network_.room(place_of(id), begin) + machine::contribute_ps(machine_, operand),
        machine::memory_ps(machine_.memory, operand));
    spend(id, strand, end, Activity::kSend, step);
    count_as_copy(Activity::kSend, machine::pack_ps(machine_, {.bytes = operand}));
    count_message(operand);
    // The NIC is asked when it is time: others of the node may be first.
    strand->posting = careful_ && end > begin;
    if (strand->posting) return true;
  }
  strand->posting = false;
  const std::int64_t left =
      network_.leave(place_of(id), 0, strand->ready, transfers_[packet_transfer(operand)]);
  Flight& flight = flight_of(id);
  const auto host = flight.job->call.limits.nodes->node_of(static_cast<Rank>(id - flight.base));
  const auto result = flight.switches->contribute(static_cast<std::size_t>(host),
                                                  {.time = left + machine::to_switch_ps(costs),
                                                   .operand = operand,
                                                   .from = id,
                                                   .path = path_of(id),
                                                   .sent = strand->ready});
  next_packet(id, strand, step);
  if (!result) return true;
  const Subject subject{.kind = EventKind::kMessage,
                        .channel = kFromSwitches,
                        .transfer = packet_transfer(result->operand)};
  for (std::size_t each = 0; each < flight.switches->hosts(); ++each) {
    Event event;
    event.time = flight.switches->result_at(each);
    event.rank = flight.switches->id_of(each);
    event.from = flight.base;
    event.word = subject.word();
    event.number = static_cast<std::int32_t>(packet);
    event.set_path(path_node(result->path, result->from, event.rank, result->sent));
    push(event);
  }
  return true;
}

template <bool kFull>
bool Simulation<kFull>::await_result(std::uint32_t id, StrandState* strand, const Step& step,
                                     std::int64_t packet) {
  RankState& state = state_of(id);
  if (strand->since < 0) strand->since = strand->ready;
  const MessageKey key(flight_of(id).base, kFromSwitches, static_cast<std::int32_t>(packet));
  const std::int64_t by = shares_cpu(state) ? strand->ready : INT64_MAX;
  const std::optional<Arrived> arrived = inboxes_.take(&state.inbox, key, by);
  if (!arrived) {
    strand->state = StrandState::State::kNeedsMessage;
    strand->key = key;
    return false;
  }
  if (arrived->time > by) {  // meanwhile another strand may go on
    strand->ready = arrived->time;
    return true;
  }
  take_result(id, strand, step, *arrived);
  return true;
}

template <bool kFull>
void Simulation<kFull>::take_result(std::uint32_t id, StrandState* strand, const Step& step,
                                    const Arrived& arrived) {
  const machine::InSwitch& costs = machine_.in_switch;
  const std::int64_t packets = machine::packets(costs, step.time());
  const std::int64_t packet = packet_action(strand->round, packets, costs.window).packet;
  const std::int64_t operand = machine::operand_bytes(costs, step.time(), packet);
  note_wait(id, arrived.time, arrived.path);
  strand->state = StrandState::State::kReady;
  const std::int64_t begin = std::max(strand->ready, arrived.time);
  const std::int64_t end =
      network_.use_memory(node_, begin, begin + machine::take_result_ps(machine_, operand),
                          machine::memory_ps(machine_.memory, operand));
  spend(id, strand, end, Activity::kWait, step);
  count_as_copy(Activity::kWait, machine::pack_ps(machine_, {.bytes = operand}));
  next_packet(id, strand, step);
}

template <bool kFull>
void Simulation<kFull>::next_packet(std::uint32_t id, StrandState* strand, const Step& step) {
  const std::int64_t packets = machine::packets(machine_.in_switch, step.time());
  if (++strand->round < 2 * packets) return;
  strand->round = 0;
  Flight& flight = flight_of(id);
  const auto host = flight.job->call.limits.nodes->node_of(static_cast<Rank>(id - flight.base));
  flight.switches->leave(static_cast<std::size_t>(host));
  next_step(id, strand);
}

}  // namespace carillon::sim
