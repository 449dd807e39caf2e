// SPDX-License-Identifier: Apache-2.0
//
// Simulation: the servlets of a program's nodes. A node's servlet has a core, and does there, one
// step after another, what the started collectives of all ranks of the node have to do. Handing one
// over and telling its rank of the end are a cache line in shared memory each:
//
//   rank      start (a line) | computes ...                         | wait (finds the line)
//   servlet         ... finds it | posts, waits, copies ... | a line
#pragma once

#include <algorithm>
#include <string>

#include "sim/simulation.h"

namespace carillon::sim {

template <bool kFull>
void Simulation<kFull>::make_servlets() {
  const std::int32_t nodes = nodes_ == nullptr ? 1 : nodes_->count();
  replay_->servlets.resize(static_cast<std::size_t>(nodes));
  replay_->next_base += static_cast<std::uint32_t>(nodes);
  while (members_.size() * kMembers < static_cast<std::size_t>(nodes)) {
    members_.push_back(std::make_unique<RankState[]>(kMembers));
  }
  for (std::int32_t node = 0; node < nodes; ++node) {
    const std::uint32_t servlet = ranks_ + static_cast<std::uint32_t>(node);
    RankState& state = state_of(servlet);
    // Says where it is; it has no part in any call.
    state.owner = nodes_ == nullptr ? 0 : static_cast<std::uint32_t>(nodes_->members(node).front());
    state.agent = servlet;
  }
}

template <bool kFull>
Status Simulation<kFull>::check_servlets() const {
  for (std::size_t node = 0; node < replay_->servlets.size(); ++node) {
    const std::size_t ranks =
        nodes_ == nullptr ? ranks_ : nodes_->members(static_cast<std::int32_t>(node)).size();
    if (static_cast<std::int64_t>(ranks) < machine_.node.cores) continue;
    return {Code::kUnsupported, "machine " + machine_.name + " has " +
                                    std::to_string(machine_.node.cores) + " cores a node: beside " +
                                    std::to_string(ranks) + " ranks there is none for a servlet"};
  }
  return {};
}

// The rank leaves what it has started to its node's servlet.
template <bool kFull>
void Simulation<kFull>::hand_over(std::uint32_t id) {
  RankState& state = state_of(id);
  const std::uint32_t rank = state.owner;
  state.agent = ranks_ + static_cast<std::uint32_t>(node_of(rank));
  replay_->actors[rank].slots[state.slot].handed_over = true;
  members_of(state.agent).push_back(id);
  states_[rank].cpu += machine::local_put_ps(machine_, {.bytes = 0});
  state.path = states_[rank].path;
  Event event;
  event.time = states_[rank].cpu + machine_.shared_memory.latency_ps;
  event.rank = id;
  event.word = Subject{.kind = EventKind::kBegin}.word();
  push(event);
}

// The servlet can see it at `time`; it looks for such before it goes on with what it has.
template <bool kFull>
void Simulation<kFull>::pick_up(std::uint32_t id, std::int64_t time) {
  RankState& servlet = state_of(agent_of(id));
  if (time > servlet.cpu) servlet.path = state_of(id).path;
  begin(id, std::max(time, servlet.cpu) + machine::local_wait_ps(machine_));
  if (status_.code() == Code::kUnsupported) {
    status_ =
        replay_->replay.program.error(state_of(id).call->line, std::string(status_.message()));
  }
  if (status_.ok()) run_servlet(agent_of(id));
}

template <bool kFull>
void Simulation<kFull>::run_servlet(std::uint32_t servlet) {
  std::uint32_t member = 0;
  StrandState* strand = nullptr;
  while (status_.ok() && next_member(servlet, &member, &strand)) {
    if (strand->ready >= limit_of(state_of(servlet))) return wake_at(servlet, strand->ready);
    const std::uint32_t owner = state_of(member).owner;
    do_step(member, strand);
    const Actor& actor = replay_->actors[owner];
    if (actor.waiting && !actor.slots[actor.slot].in_flight) run_actor(owner);
  }
}

// The member's part has ended: from when its rank can know.
template <bool kFull>
std::int64_t Simulation<kFull>::tell_owner(std::uint32_t id, std::int64_t end) {
  std::int64_t& cpu = cpu_of(id);
  cpu = std::max(cpu, end) + machine::local_put_ps(machine_, {.bytes = 0});
  return cpu + machine_.shared_memory.latency_ps;
}

}  // namespace carillon::sim
