// SPDX-License-Identifier: Apache-2.0
//
// Simulation: messages that are lent within a node. Their reader copies them from the writer's own
// memory, whose part of the call ends when all have been read.
#pragma once

#include <algorithm>

#include "sim/simulation.h"

namespace carillon::sim {

/// One more message of the rank is lent, to all its readers.
template <bool kFull>
void Simulation<kFull>::lend(std::uint32_t id, const Step& step) {
  RankState& state = state_of(id);
  if (!state.more) state.more = std::make_unique<More>();
  const Flight& flight = flight_of(id);
  const Call& call = flight.job->call;
  state.more->lent +=
      readers_of(step.channel, static_cast<Rank>(id - flight.base), call.shared.ranks, call.limits);
}

/// A message that has been lent is there; when the rank, which is done with all before at `begin`,
/// has it, and what of that is copying.
template <bool kFull>
std::int64_t Simulation<kFull>::read_lent(std::int64_t begin, const StrandState& strand,
                                          const Step& step, std::uint32_t transfer,
                                          std::int64_t* copy_ps) {
  const TransferTable::Costs& lent = transfers_[transfer];
  const std::int64_t waited = begin + machine::local_wait_ps(machine_);
  const std::int64_t read =
      network_.use_memory(node_, begin, waited + lent.read_lent_ps, lent.memory_ps);
  *copy_ps = lent.read_lent_ps;
  if (step.kind != OpKind::kRecv || strand.landed) return read;
  const TransferTable::Costs& list = transfers_[step.transfer];
  *copy_ps += list.local_recv_copy_ps;
  return network_.use_memory(node_, read, read + list.local_recv_copy_ps, list.memory_ps);
}

/// A reader has a lent message. If it was the last one, and the rank has done all else, it ends.
template <bool kFull>
void Simulation<kFull>::end_lending(const Event& event) {
  RankState& state = state_of(event.rank);
  More& more = *state.more;
  more.lent_until_ps = std::max(more.lent_until_ps, event.time);
  if (--more.lent > 0) return;
  const auto is_going_on = [](const StrandState& strand) {
    return strand.state != StrandState::State::kDone;
  };
  if (find_strand(&state, is_going_on) != nullptr) return;
  note_wait(event.rank, event.time, event.path());
  finish(event.rank);
  if constexpr (kFull) {
    if (replay_) run(event.rank);
  }
}

}  // namespace carillon::sim
