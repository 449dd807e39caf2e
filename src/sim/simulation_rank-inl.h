// SPDX-License-Identifier: Apache-2.0
//
// Simulation: what a rank does by itself.
#pragma once

#include <algorithm>

#include "sim/simulation.h"

namespace carillon::sim {

template <bool kTraced>
template <typename Body>
auto Simulation<kTraced>::find_strand(RankState* rank, Body body) -> StrandState* {
  if (body(rank->first)) return &rank->first;
  if (!rank->more) return nullptr;
  const auto found = std::find_if(rank->more->strands.begin(), rank->more->strands.end(), body);
  return found == rank->more->strands.end() ? nullptr : &*found;
}

// Of a user's buffer that has to be copied into registered memory or out of it.
template <bool kTraced>
std::int64_t Simulation<kTraced>::staging_ps(std::int64_t bytes, bool staged) const {
  if (!staged || job_.call.params.two_sided || nodes_ == nullptr || nodes_->count() == 1) return 0;
  return machine::pack_ps(machine_, {.bytes = bytes});
}

template <bool kTraced>
void Simulation<kTraced>::begin(std::uint32_t id, std::int64_t time) {
  const auto rank = static_cast<Rank>(id);
  if (Status status = emission_.begin(rank, &beginning_); !status.ok()) return fail(status);
  RankState& state = states_[id];
  const Local local = job_.locals.empty() ? Local{} : job_.locals[id];
  state.cpu =
      time + staging_ps(input_bytes(job_.call.shared, local, rank), machine_.one_sided.stage_input);
  report_.activity_ps[static_cast<std::size_t>(Activity::kCopy)] += state.cpu - time;
  if (beginning_.size() > 1) {
    if (!state.more) state.more = std::make_unique<More>();
    state.more->strands.resize(beginning_.size() - 1);
  }
  for (std::size_t i = 0; i < beginning_.size(); ++i) {
    StrandState& strand = i == 0 ? state.first : state.more->strands[i - 1];
    strand.parts = beginning_[i];
    strand.ready = state.cpu;
    strand.state = StrandState::State::kReady;
  }
  run(id);
}

template <bool kTraced>
std::uint32_t Simulation<kTraced>::index_of(const RankState& rank, const StrandState* strand) {
  if (strand == &rank.first) return 0;
  return static_cast<std::uint32_t>(strand - rank.more->strands.data()) + 1;
}

// The one that could go on first.
template <bool kTraced>
auto Simulation<kTraced>::next_strand(RankState* rank) -> StrandState* {
  using State = typename StrandState::State;
  StrandState* next = rank->first.state == State::kReady ? &rank->first : nullptr;
  if (!rank->more) return next;
  for (StrandState& strand : rank->more->strands) {
    if (strand.state != State::kReady) continue;
    if (next == nullptr || strand.ready < next->ready) next = &strand;
  }
  return next;
}

template <bool kTraced>
void Simulation<kTraced>::wake_at(std::uint32_t id, std::int64_t time) {
  RankState& state = states_[id];
  if (state.wake <= time) return;
  state.wake = time;
  Event event;
  event.time = time;
  event.rank = id;
  event.word = Subject{.kind = EventKind::kWake}.word();
  push(event);
}

template <bool kTraced>
void Simulation<kTraced>::run(std::uint32_t id) {
  RankState& state = states_[id];
  while (StrandState* const strand = next_strand(&state)) {
    strand->ready = std::max(strand->ready, state.cpu);
    do {
      if (strand->ready >= limit_of(state)) return wake_at(id, strand->ready);
    } while (do_step(id, strand) && !has_strands(state));
    if (!status_.ok()) return;
  }
}

// The next window of the strand; false at its end.
template <bool kTraced>
bool Simulation<kTraced>::next_part(std::uint32_t id, StrandState* strand) {
  if (strand->parts.next < strand->parts.last) {
    Status status = emission_.advance(static_cast<Rank>(id), &strand->parts);
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
  if (find_strand(&states_[id], going_on) == nullptr) finish(id);
  return false;
}

// The strand's next step that is work, behind ends of windows and heads of loops; null at its end.
template <bool kTraced>
const Step* Simulation<kTraced>::find_step(std::uint32_t id, StrandState* strand) {
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
template <bool kTraced>
bool Simulation<kTraced>::do_step(std::uint32_t id, StrandState* strand) {
  const Step* const step = find_step(id, strand);
  if (step == nullptr) return false;
  switch (step->kind) {
    case OpKind::kCopy:
    case OpKind::kReduce: work(id, strand, *step); return true;
    case OpKind::kWait:
    case OpKind::kRecv: return await(id, strand, *step);
    default: return post(id, strand, *step);
  }
}

template <bool kTraced>
void Simulation<kTraced>::work(std::uint32_t id, StrandState* strand, const Step& step) {
  const std::int64_t end = network_.use_memory(node_, strand->ready, strand->ready + step.time(),
                                               transfers_[step.transfer]);
  spend(id, strand, end, step.kind == OpKind::kCopy ? Activity::kCopy : Activity::kReduce, step);
  next_step(id, strand);
}

template <bool kTraced>
void Simulation<kTraced>::spend(std::uint32_t id, StrandState* strand, std::int64_t until,
                                Activity activity, const Step& step) {
  const std::int64_t begin = strand->since < 0 ? strand->ready : strand->since;
  report_.activity_ps[static_cast<std::size_t>(activity)] += until - begin;
  if constexpr (kTraced) {
    const bool has_peer = step.kind != OpKind::kCopy && step.kind != OpKind::kReduce &&
                          !(step.channel == Channel::kAll && activity == Activity::kSend);
    if (options_.on_span) {
      options_.on_span(
          {.rank = static_cast<Rank>(id),
           .strand = static_cast<std::int32_t>(index_of(states_[id], strand)),
           .op = step.kind,
           .peer = has_peer ? static_cast<Rank>(strand->parts.part.peers[step.peer]) : Rank{-1},
           .bytes = transfers_[step.transfer].transfer.bytes,
           .begin_ps = begin,
           .end_ps = until});
    }
  }
  strand->since = -1;
  strand->ready = until;
  states_[id].cpu = until;
}

template <bool kTraced>
void Simulation<kTraced>::next_step(std::uint32_t id, StrandState* strand) {
  RankState& state = states_[id];
  const bool holds = state.more && !state.more->held.empty();
  if (holds) release(id, index_of(state, strand), strand->step, strand->ready);
  ++strand->step;
  if (strand->rounds == 0) return;
  const std::uint32_t body = strand->parts.part.shape->steps[strand->loop].link;
  if (strand->step != strand->loop + 1 + body) return;
  ++strand->round;
  if (--strand->rounds > 0) {
    strand->step = strand->loop + 1;
  } else if (holds) {
    release(id, index_of(state, strand), strand->loop, strand->ready);
  }
}

template <bool kTraced>
void Simulation<kTraced>::finish(std::uint32_t id) {
  RankState& state = states_[id];
  StrandState* last = &state.first;
  const auto leave = [&](StrandState& strand) {
    if (strand.ready > last->ready) last = &strand;
    emission_.give_back(&strand.parts.part);
  };
  leave(state.first);
  if (state.more) std::for_each(state.more->strands.begin(), state.more->strands.end(), leave);
  const Local local = job_.locals.empty() ? Local{} : job_.locals[id];
  const std::int64_t staging =
      staging_ps(output_bytes(job_.call.shared, local, static_cast<Rank>(id)),
                 machine_.one_sided.stage_output);
  report_.activity_ps[static_cast<std::size_t>(Activity::kCopy)] += staging;
  const std::int64_t end = last->ready + staging;
  const std::int64_t taken = end - begin_of(id);
  report_.rank_sum_ps += taken;
  report_.rank_max_ps = std::max(report_.rank_max_ps, taken);
  if (options_.rank_times) report_.rank_ps[id] = taken;
  // Of several that end last the first rank: which one ends is then no matter of order.
  if (end > last_end_ || (end == last_end_ && id < last_rank_) || ended_ == 0) {
    last_end_ = end;
    last_rank_ = id;
    last_path_ = last->path;
  }
  ++ended_;
  state.more.reset();
  state.inbox.crowd.reset();
}

}  // namespace carillon::sim
