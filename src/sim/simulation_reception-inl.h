// SPDX-License-Identifier: Apache-2.0
//
// Simulation: which process of a node takes multicasts to nodes from the network, by the rule of
// engine/reception.h: one of them does, at first the first of the node, as after an earlier
// broadcast. A process that waits, and for so long as Multicast::patience_ps that one has not come
// to the message, takes over from it; what had come to the other one it asks the writer for, which
// sends it again, to this node. What has been received all of the node find in shared memory.
#pragma once

#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace carillon::sim {

// The nodes of the rank's call, if its node has several ranks; else null.
template <bool kFull>
const Nodes* Simulation<kFull>::sharers_of(std::uint32_t id) const {
  const Flight& flight = flight_of(id);
  const Nodes* const nodes = flight.job->call.limits.nodes.get();
  const auto rank = static_cast<Rank>(id - flight.base);
  return nodes != nullptr && nodes->members(nodes->node_of(rank)).size() > 1 ? nodes : nullptr;
}

template <bool kFull>
NodeReception& Simulation<kFull>::reception_of(std::uint32_t id) {
  Flight& flight = flight_of(id);
  const Nodes& nodes = *flight.job->call.limits.nodes;
  const std::int32_t node = nodes.node_of(static_cast<Rank>(id - flight.base));
  const auto [found, is_new] = flight.receptions.try_emplace(node);
  if (is_new) {
    found->second.receiver = flight.base + static_cast<std::uint32_t>(nodes.members(node).front());
  }
  return found->second;
}

template <bool kFull>
typename Simulation<kFull>::StrandState* Simulation<kFull>::strand_waiting(std::uint32_t id,
                                                                           const MessageKey& key) {
  if (!has_state(id)) return nullptr;
  return find_strand(&state_of(id), [&](const StrandState& each) {
    return each.state == StrandState::State::kNeedsMessage && each.key == key;
  });
}

// A message to nodes is at the node, in the receiver's memory; or at the writer's one that asks for
// it again.
template <bool kFull>
void Simulation<kFull>::come_to_node(const Event& event) {
  Subject subject = Subject::of(event.word);
  if (subject.role == Role::kRequest) {
    subject.role = Role::kPayload;
    if constexpr (kFull) path_[event.path()].came = event.time;
    return send_between(event.rank, event.from, event.time, subject, event.number, event.path());
  }
  subject.kind = EventKind::kDeliver;
  if (sharers_of(event.rank) == nullptr) {
    Event later = event;
    later.word = subject.word();
    return push(later);
  }
  NodeReception& reception = reception_of(event.rank);
  reception.came.insert({{event.from, event.number}, {event.time, subject.word(), event.path()}});
  const MessageKey key(event.from, subject.channel, event.number);
  if (waits_for(reception.receiver, key)) hand_over(&reception, event.from, event.number);
}

// The strand begins to wait for a message to nodes that is not in shared memory.
template <bool kFull>
void Simulation<kFull>::wait_for_node(std::uint32_t id, const StrandState& strand,
                                      const MessageKey& key) {
  if (sharers_of(id) == nullptr) return;
  NodeReception& reception = reception_of(id);
  const Step& step = strand.parts.part.shape->steps[strand.step];
  const std::int32_t number = step.number + step.stride * strand.round;
  if (reception.receiver == id) {
    if (reception.came.contains({key.peer(), number})) hand_over(&reception, key.peer(), number);
    return;
  }
  Event event;
  event.time = strand.ready + machine_.multicast.patience_ps;
  event.rank = id;
  event.from = key.peer();
  event.word = Subject{.kind = EventKind::kTakeOver, .channel = Channel::kNodes}.word();
  event.number = number;
  push(event);
}

// The receiver waits for what has come.
template <bool kFull>
void Simulation<kFull>::hand_over(NodeReception* reception, std::uint32_t from,
                                  std::int32_t number) {
  const auto found = reception->came.lower_bound({from, number});  // of several the first
  Event event;
  event.time = std::max(now_, found->second.time);
  event.rank = reception->receiver;
  event.from = from;
  event.word = found->second.word;
  event.number = number;
  event.set_path(found->second.path);
  reception->came.erase(found);
  reception->taken = event.time;
  push(event);
}

// The rank's patience is at its end. It stays where it is if the receiver has come to the message,
// or another one has taken over.
template <bool kFull>
void Simulation<kFull>::take_over(const Event& event) {
  const MessageKey key(event.from, Channel::kNodes, event.number);
  const std::int64_t patience = machine_.multicast.patience_ps;
  const StrandState* const strand = strand_waiting(event.rank, key);
  // Of an earlier message of that number: the one that it waits for now has an event of its own.
  if (strand == nullptr || strand->since + patience > event.time) return;
  NodeReception& reception = reception_of(event.rank);
  if (waits_for(reception.receiver, key)) return;
  if (reception.taken > event.time - patience) {  // it has been at work since
    Event later = event;
    later.time = reception.taken + patience;
    return push(later);
  }
  reception.receiver = event.rank;
  const auto lost = std::exchange(reception.came, {});
  for (const auto& [message, came] : lost) {
    Subject subject = Subject::of(came.word);
    subject.role = Role::kRequest;
    send_between(event.rank, message.first, event.time, subject, message.second,
                 path_of(event.rank));
  }
}

// The others of the node find the message in shared memory.
template <bool kFull>
void Simulation<kFull>::publish(std::uint32_t id, std::int64_t time, Subject subject,
                                std::uint32_t writer, std::int32_t number) {
  const Nodes* const nodes = sharers_of(id);
  if (nodes == nullptr) return;
  const Flight& flight = flight_of(id);
  subject.kind = EventKind::kDeliver;
  subject.role = Role::kCopy;
  for (const Rank member : nodes->members(nodes->node_of(static_cast<Rank>(id - flight.base)))) {
    const std::uint32_t to = flight.base + static_cast<std::uint32_t>(member);
    if (to == id) continue;
    Event event;
    event.time = time + machine_.shared_memory.latency_ps;
    event.rank = to;
    event.from = writer;
    event.word = subject.word();
    event.number = number;
    event.set_path(path_node(path_of(id), id, to, time));
    push(event);
  }
}

}  // namespace carillon::sim
