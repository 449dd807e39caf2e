// SPDX-License-Identifier: Apache-2.0
//
// Simulation: what a rank does by itself.
#pragma once

#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace carillon::sim {

template <bool kFull>
template <typename Body>
auto Simulation<kFull>::find_strand(RankState* rank, Body body) -> StrandState* {
  if (body(rank->first)) return &rank->first;
  if (!rank->more) return nullptr;
  const auto found = std::find_if(rank->more->strands.begin(), rank->more->strands.end(), body);
  return found == rank->more->strands.end() ? nullptr : &*found;
}

// A user's buffer that has to be copied into registered memory or out of it, from `time` on: until
// when.
template <bool kFull>
std::int64_t Simulation<kFull>::stage(std::uint32_t id, std::int64_t time, std::int64_t bytes,
                                      bool staged) {
  if (!staged) return time;
  const Call& call = flight_of(id).job->call;
  if (call.params.two_sided || call.limits.one_node()) return time;
  const std::int64_t end =
      network_.use_memory(place_of(id), time, time + machine::pack_ps(machine_, {.bytes = bytes}),
                          machine::memory_ps(machine_.memory, bytes));
  report_.activity_ps[static_cast<std::size_t>(Activity::kCopy)] += end - time;
  check_time(end);
  return end;
}

template <bool kFull>
void Simulation<kFull>::begin(std::uint32_t id, std::int64_t time) {
  const Flight& flight = flight_of(id);
  const auto rank = static_cast<Rank>(id - flight.base);
  const std::int64_t staged =
      stage(id, time, input_bytes(flight.job->call.shared, local_of(id), rank),
            machine_.one_sided.stage_input);
  cpu_of(id) = staged;
  begin_stage(id, {}, staged);
}

template <bool kFull>
void Simulation<kFull>::begin_stage(std::uint32_t id, Stage stage, std::int64_t time) {
  const Flight& flight = flight_of(id);
  const auto rank = static_cast<Rank>(id - flight.base);
  const std::uint32_t known = std::exchange(beginning_class_, 0);
  if (Status status = flight.emission->begin(rank, local_of(id), stage, known, &beginning_);
      !status.ok()) {
    return fail(status);
  }
  RankState& state = state_of(id);
  const bool goes_on = flight.emission->goes_on();
  if (beginning_.size() > 1 || goes_on || stage.number > 0) {
    if (!state.more) state.more = std::make_unique<More>();
    state.more->strands.resize(beginning_.size() - 1);
    state.more->stage = stage.number;
    state.more->goes_on = goes_on;
  }
  for (std::size_t i = 0; i < beginning_.size(); ++i) {
    StrandState& strand = i == 0 ? state.first : state.more->strands[i - 1];
    strand = {};
    strand.parts = beginning_[i];
    shift_peers(flight, strand.parts.part);
    strand.ready = time;
    strand.state = StrandState::State::kReady;
  }
}

// The rank's strands are done; true: with a stage that another one follows, which it has begun.
template <bool kFull>
bool Simulation<kFull>::next_stage(std::uint32_t id) {
  RankState& state = state_of(id);
  if (!state.more || !state.more->goes_on) return false;
  Flight& flight = flight_of(id);
  if (!flight.lessons) {
    std::vector<Local> locals;
    for (Rank rank = 0; rank < flight.job->call.shared.ranks; ++rank) {
      const std::uint32_t other = flight.base + static_cast<std::uint32_t>(rank);
      if constexpr (kFull) {
        if (replay_ && state_of(other).call == nullptr) {
          fail({Code::kUnsupported, "a stage ends before all ranks have started the call"});
          return false;
        }
      }
      locals.push_back(local_of(other));
    }
    Result<Lessons> lessons = Lessons::of(*flight.job, locals);
    if (!lessons.ok()) {
      fail(lessons.status());
      return false;
    }
    flight.lessons = std::move(lessons.value());
  }
  std::int64_t joined = state.first.ready;
  for (const StrandState& strand : state.more->strands) joined = std::max(joined, strand.ready);
  const std::int32_t stage = state.more->stage + 1;
  if (stage >= Compiler::kStages) {
    fail({Code::kUnsupported, "a schedule of so many stages cannot be simulated"});
    return false;
  }
  give_back(id);
  begin_stage(id, {stage, flight.lessons->learned(static_cast<Rank>(id - flight.base), stage)},
              joined);
  return true;
}

template <bool kFull>
void Simulation<kFull>::give_back(std::uint32_t id) {
  RankState& state = state_of(id);
  Emission& emission = *flight_of(id).emission;
  emission.give_back(&state.first.parts.part);
  if (!state.more) return;
  for (StrandState& strand : state.more->strands) emission.give_back(&strand.parts.part);
}

// A part names its peers by their ranks in the team.
template <bool kFull>
void Simulation<kFull>::shift_peers(const Flight& flight, const Part& part) {
  if (flight.base == 0 || part.shape == nullptr) return;
  for (std::size_t i = 0; i < part.shape->peers; ++i) part.peers[i] += flight.base;
}

template <bool kFull>
std::uint32_t Simulation<kFull>::index_of(const RankState& rank, const StrandState* strand) {
  if (strand == &rank.first) return 0;
  return static_cast<std::uint32_t>(strand - rank.more->strands.data()) + 1;
}

// The one that could go on first.
template <bool kFull>
auto Simulation<kFull>::next_strand(RankState* rank) -> StrandState* {
  using State = typename StrandState::State;
  StrandState* next = rank->first.state == State::kReady ? &rank->first : nullptr;
  if (!rank->more) return next;
  for (StrandState& strand : rank->more->strands) {
    if (strand.state != State::kReady) continue;
    if (next == nullptr || strand.ready < next->ready) next = &strand;
  }
  return next;
}

template <bool kFull>
void Simulation<kFull>::wake_at(std::uint32_t id, std::int64_t time) {
  RankState& state = state_of(id);
  if (state.wake <= time) return;
  state.wake = time;
  Event event;
  event.time = time;
  event.rank = id;
  event.word = Subject{.kind = EventKind::kWake}.word();
  push(event);
}

// Where cores are shared: whether the rank, which could go on at `ready`, has its core now. If not,
// it is its turn later.
template <bool kFull>
bool Simulation<kFull>::take_core(std::uint32_t rank, std::int64_t ready) {
  if (cores_.has(rank)) return true;
  std::optional<std::int64_t> again;
  if (cores_.claim(rank, std::max(ready, now_), now_, &again)) {
    states_[rank].cpu = std::max(states_[rank].cpu, now_);
    return true;
  }
  if (again) wake_at(rank, *again);
  return false;
}

// It waits, or has ended.
template <bool kFull>
void Simulation<kFull>::leave_core(std::uint32_t rank) {
  const auto turn = cores_.leave(rank, states_[rank].cpu);
  if (turn) wake_at(turn->rank, turn->time);
}

template <bool kFull>
void Simulation<kFull>::run(std::uint32_t id) {
  RankState& state = state_of(id);
  if constexpr (kFull) {
    if (replay_) return state.agent < ranks_ ? run_actor(state.agent) : run_servlet(state.agent);
  }
  if (cores_.are_shared()) {
    const StrandState* const strand = next_strand(&state);
    if (strand == nullptr || !take_core(id, strand->ready)) return;
  }
  while (StrandState* const strand = next_strand(&state)) {
    strand->begin_at(state.cpu);
    do {
      if (strand->ready >= limit_of(state)) return wake_at(id, strand->ready);
    } while (do_step(id, strand) && !shares_cpu(state));
    if (!status_.ok()) return;
  }
  if (cores_.are_shared()) leave_core(id);
}

// The next window of the strand; false at its end.
template <bool kFull>
bool Simulation<kFull>::next_part(std::uint32_t id, StrandState* strand) {
  if (strand->parts.next < strand->parts.last) {
    const Flight& flight = flight_of(id);
    const auto rank = static_cast<Rank>(id - flight.base);
    Status status = flight.emission->advance(rank, local_of(id), &strand->parts);
    shift_peers(flight, strand->parts.part);
    if (!status.ok()) {
      fail(status);
      return false;
    }
    strand->step = 0;
    if (strand->parts.part.shape != nullptr) return true;
  }
  strand->state = StrandState::State::kDone;
  const auto going_on = [](const StrandState& other) {
    return other.state != StrandState::State::kDone;
  };
  if (find_strand(&state_of(id), going_on) == nullptr && !next_stage(id)) finish(id);
  return false;
}

// The strand's next step that is work, behind ends of windows and heads of loops; null at its end.
template <bool kFull>
const Step* Simulation<kFull>::find_step(std::uint32_t id, StrandState* strand) {
  for (;;) {
    const Shape* const shape = strand->parts.part.shape;
    if (shape == nullptr || strand->step == shape->steps.size()) {
      if (!next_part(id, strand)) return nullptr;
      continue;
    }
    const Step& step = shape->steps[strand->step];
    if (step.kind != OpKind::kRepeat) return &step;
    strand->loop = strand->step;
    strand->rounds = step.time();
    strand->round = 0;
    strand->step += strand->rounds > 0 ? 1 : step.link + 1;
  }
}

// Does the strand's next step; false if it cannot go on now.
template <bool kFull>
bool Simulation<kFull>::do_step(std::uint32_t id, StrandState* strand) {
  const Step* const step = find_step(id, strand);
  if (step == nullptr) return false;
  switch (step->kind) {
    case OpKind::kCopy:
    case OpKind::kReduce: work(id, strand, *step); return true;
    case OpKind::kWait:
    case OpKind::kReceive:
    case OpKind::kRecv: return await(id, strand, *step);
    case OpKind::kAggregate: return aggregate(id, strand, *step);
    default: return post(id, strand, *step);
  }
}

template <bool kFull>
void Simulation<kFull>::work(std::uint32_t id, StrandState* strand, const Step& step) {
  if (step.lending == Lending::kLands && strand->landed) return next_step(id, strand);
  const std::int64_t end = network_.use_memory(node_, strand->ready, strand->ready + step.time(),
                                               transfers_[step.transfer].memory_ps);
  spend(id, strand, end, step.kind == OpKind::kCopy ? Activity::kCopy : Activity::kReduce, step);
  next_step(id, strand);
}

template <bool kFull>
void Simulation<kFull>::spend(std::uint32_t id, StrandState* strand, std::int64_t until,
                              Activity activity, const Step& step) {
  const std::int64_t begin = strand->since < 0 ? strand->ready : strand->since;
  report_.activity_ps[static_cast<std::size_t>(activity)] += until - begin;
  if constexpr (kFull) {
    const bool has_peer = step.kind != OpKind::kCopy && step.kind != OpKind::kReduce &&
                          step.kind != OpKind::kAggregate &&
                          !(has_readers(step.channel) && activity == Activity::kSend);
    if (options_.on_span) {
      options_.on_span(
          {.rank = static_cast<Rank>(owner_of(id)),
           .strand = static_cast<std::int32_t>(index_of(state_of(id), strand)),
           .op = step.kind,
           .peer = has_peer ? static_cast<Rank>(owner_of(peer_of(id, *strand, step))) : Rank{-1},
           .bytes = transfers_[step.transfer].transfer.bytes,
           .begin_ps = begin,
           .end_ps = until});
    }
  }
  check_time(until);
  strand->since = -1;
  strand->ready = until;
  cpu_of(id) = until;
}

// Of what has been spent with a message, this much was copying.
template <bool kFull>
void Simulation<kFull>::count_as_copy(Activity activity, std::int64_t ps) {
  report_.activity_ps[static_cast<std::size_t>(activity)] -= ps;
  report_.activity_ps[static_cast<std::size_t>(Activity::kCopy)] += ps;
}

template <bool kFull>
void Simulation<kFull>::next_step(std::uint32_t id, StrandState* strand) {
  RankState& state = state_of(id);
  const bool holds = state.more && !state.more->held.empty();
  if (holds) release(id, index_of(state, strand), strand->step, strand->ready);
  ++strand->step;
  if (strand->rounds == 0) return;
  const std::uint32_t body = strand->parts.part.shape->steps[strand->loop].link;
  if (strand->step != strand->loop + 1 + body) return;
  ++strand->round;
  if (--strand->rounds > 0) {
    strand->step = strand->loop + 1;
    return;
  }
  strand->round = 0;
  if (holds) release(id, index_of(state, strand), strand->loop, strand->ready);
}

template <bool kFull>
void Simulation<kFull>::finish(std::uint32_t id) {
  RankState& state = state_of(id);
  std::int64_t last = state.first.ready;
  if (state.more) {
    if (state.more->lent > 0) return;  // others still read its memory: it ends with them
    for (const StrandState& strand : state.more->strands) last = std::max(last, strand.ready);
    const std::int64_t waited = std::max<std::int64_t>(state.more->lent_until_ps - last, 0);
    report_.activity_ps[static_cast<std::size_t>(Activity::kWait)] += waited;
    last += waited;
  }
  give_back(id);
  const Flight& flight = flight_of(id);
  const auto rank = static_cast<Rank>(id - flight.base);
  end(id, stage(id, last, output_bytes(flight.job->call.shared, local_of(id), rank),
                machine_.one_sided.stage_output));
  state.more.reset();
  state.inbox.crowd.reset();
  if (!sparse_) return;
  if (state.asking > 0) {
    state.over = true;
  } else {
    forget(id);
  }
}

// The rank's part of the call has ended.
template <bool kFull>
void Simulation<kFull>::end(std::uint32_t id, std::int64_t end) {
  if constexpr (kFull) {
    if (replay_) return end_member(id, end);
  }
  if (cores_.are_shared()) cores_.end(id);
  const std::int64_t taken = end - begin_of(id);
  report_.rank_sum_ps += taken;
  report_.rank_max_ps = std::max(report_.rank_max_ps, taken);
  if (options_.rank_times) report_.rank_ps[id] = taken;
  // Of several that end last the first rank: which one ends is then no matter of order.
  if (end > last_end_ || (end == last_end_ && id < last_rank_) || ended_ == 0) {
    last_end_ = end;
    last_rank_ = id;
    last_path_ = path_of(id);
  }
  ++ended_;
}

}  // namespace carillon::sim
