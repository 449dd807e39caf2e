// SPDX-License-Identifier: Apache-2.0
//
// Simulation: programs. A rank does what its program says on the CPU that its collectives use, too:
// these go on while it is in start or wait, as far as their messages are there, and not while it
// computes; or, with a thread or a servlet for them, at any time.
#pragma once

#include <algorithm>
#include <string>

#include "sim/simulation.h"

namespace carillon::sim {

namespace detail {

inline std::string describe(const program::Call& call) {
  std::string text(collective_name(call.collective));
  if (has_root(call.collective)) text += " with root " + std::to_string(call.root);
  if (call.count > 0) {
    text += " of " + std::to_string(call.count) + " elements of " +
            std::to_string(call.element_bytes) + " bytes";
  }
  return text;
}

inline bool is_same_call(const program::Call& a, const program::Call& b) {
  return a.collective == b.collective && a.root == b.root && a.count == b.count &&
         a.element_bytes == b.element_bytes && a.commutative == b.commutative;
}

}  // namespace detail

template <bool kFull>
Simulation<kFull>::Simulation(const Replay& replay, const machine::Machine& machine,
                              const Options& options)
    : Simulation(replay.nodes.get(), replay.program.ranks, false, machine, options) {
  replay_ = std::make_unique<ReplayState>(replay);
  replay_->next_base = ranks_;
  if (replay.progress == Progress::kServlet) make_servlets();
}

// The program's time: where it computes.
template <bool kFull>
std::int64_t& Simulation<kFull>::clock_of(std::uint32_t rank) {
  if (replay_->replay.progress == Progress::kThread) return replay_->actors[rank].clock_ps;
  return states_[rank].cpu;
}

template <bool kFull>
std::uint32_t& Simulation<kFull>::clock_path_of(std::uint32_t rank) {
  if (replay_->replay.progress == Progress::kThread) return replay_->actors[rank].path;
  return states_[rank].path;
}

template <bool kFull>
void Simulation<kFull>::begin_actor(std::uint32_t rank, std::int64_t time) {
  const program::Program& program = replay_->replay.program;
  Actor& actor = replay_->actors[rank];
  actor.body = &program.bodies[program.body_of[rank]];
  actor.slots.resize(actor.body->slots.size());
  states_[rank].cpu = actor.clock_ps = actor.since_ps = time;
  run_actor(rank);
}

// In flight on the CPU of the rank, or servlet.
template <bool kFull>
std::vector<std::uint32_t>& Simulation<kFull>::members_of(std::uint32_t agent) {
  return agent < ranks_ ? replay_->actors[agent].members : replay_->servlets[agent - ranks_];
}

// The strand of those that could go on first.
template <bool kFull>
bool Simulation<kFull>::next_member(std::uint32_t agent, std::uint32_t* member,
                                    StrandState** strand) {
  *strand = nullptr;
  for (const std::uint32_t id : members_of(agent)) {
    StrandState* const next = next_strand(&state_of(id));
    if (next == nullptr || (*strand != nullptr && (*strand)->ready <= next->ready)) continue;
    *member = id;
    *strand = next;
  }
  if (*strand == nullptr) return false;
  (*strand)->begin_at(state_of(agent).cpu);
  return true;
}

template <bool kFull>
void Simulation<kFull>::run_actor(std::uint32_t rank) {
  Actor& actor = replay_->actors[rank];
  const bool has_thread = replay_->replay.progress == Progress::kThread;
  while (status_.ok()) {
    if (actor.waiting && !actor.slots[actor.slot].in_flight) {
      actor.waiting = false;
      const Actor::Slot& slot = actor.slots[actor.slot];
      if (slot.end_ps > clock_of(rank)) {
        clock_of(rank) = slot.end_ps;
        clock_path_of(rank) = slot.path;
      }
      if (slot.handed_over) clock_of(rank) += machine::local_wait_ps(machine_);
    }
    std::uint32_t member = 0;
    StrandState* strand = nullptr;
    const bool progresses = (has_thread || actor.inside) && next_member(rank, &member, &strand);
    const std::int64_t clock = clock_of(rank);
    const bool acts =
        !actor.waiting && !actor.ended &&
        (!progresses || (has_thread ? clock <= strand->ready : clock < strand->ready));
    if (!acts && !progresses) {
      if (cores_.are_shared() && cores_.has(rank)) leave_core(rank);
      return;
    }
    const std::int64_t time = acts ? clock : strand->ready;
    if (cores_.are_shared() && !cores_.has(rank)) {
      if (!take_core(rank, time)) return;
      continue;
    }
    if (time >= limit_of(states_[rank])) return wake_at(rank, time);
    if (acts) {
      next_action(rank);
    } else {
      do_step(member, strand);
    }
  }
}

// What the rank did from `since_ps` to now was the step it is at.
template <bool kFull>
void Simulation<kFull>::account(std::uint32_t rank, std::int64_t now) {
  using program::StepKind;
  Actor& actor = replay_->actors[rank];
  const std::int64_t begin = std::exchange(actor.since_ps, now);
  const program::Step* const step = std::exchange(actor.doing, nullptr);
  if (step == nullptr) return;
  const program::Program& program = replay_->replay.program;
  ReplayReport::RankTimes& times = replay_->report.ranks[rank];
  std::string_view what = "compute";
  if (step->kind == StepKind::kCompute) {
    times.compute_ps += now - begin;
  } else if (step->kind == StepKind::kOther) {
    times.other_ps += now - begin;
    what = program.others[step->call];
  } else {
    const std::uint32_t call =
        step->kind == StepKind::kWait ? actor.slots[step->slot].call : step->call;
    times.call_ps += now - begin;
    const auto kind = static_cast<std::size_t>(program.calls[call].collective);
    replay_->report.kinds.at(kind).call_ps += now - begin;
    what = program.calls[call].name;
  }
  if (now == begin) return;
  const StepSpan span{static_cast<Rank>(rank), what, step->kind, begin, now};
  if (replay_->replay.on_step) replay_->replay.on_step(span);
  if (options_.critical_path) actor.spans.push_back(span);
}

// A computation takes longer while its node's memory is busy with copies and reductions: by
// compute_slowdown of that time. True: it was at its end, and goes on.
template <bool kFull>
bool Simulation<kFull>::stretch(std::uint32_t rank) {
  Actor& actor = replay_->actors[rank];
  if (actor.doing == nullptr || actor.doing->kind != program::StepKind::kCompute) return false;
  std::int64_t& clock = clock_of(rank);
  const std::int64_t busy = network_.memory_busy_ps(node_of(rank), clock) - actor.memory_busy_ps;
  const std::int64_t longer = machine::thousandths(busy, machine_.memory.compute_slowdown_permille);
  const std::int64_t more = longer - std::exchange(actor.stretched_ps, longer);
  clock += more;
  return more > 0;
}

// The next step that takes time or starts something.
template <bool kFull>
void Simulation<kFull>::next_action(std::uint32_t rank) {
  using program::StepKind;
  constexpr std::int64_t kOften = 4096, kPsPerNs = 1000;
  Actor& actor = replay_->actors[rank];
  const std::vector<program::Step>& steps = actor.body->steps;
  std::int64_t& clock = clock_of(rank);
  if (machine_.memory.compute_slowdown_permille > 0 && stretch(rank)) return;
  account(rank, clock);
  for (;;) {
    if (++replay_->steps % kOften == 0 && options_.on_progress &&
        !options_.on_progress(report_.messages)) {
      return fail({Code::kTimeout, "the simulation was interrupted"});
    }
    if (actor.next == steps.size()) return end_actor(rank);
    const program::Step& step = steps[actor.next++];
    actor.doing = &step;
    switch (step.kind) {
      case StepKind::kRepeat:
        if (step.value == 0 || step.end == actor.next) {
          actor.next = step.end + 1;
        } else {
          actor.loops.push_back({actor.next, step.value});
        }
        continue;
      case StepKind::kEnd:
        if (--actor.loops.back().left > 0) {
          actor.next = actor.loops.back().begin;
        } else {
          actor.loops.pop_back();
        }
        continue;
      case StepKind::kOther: ++replay_->report.others; [[fallthrough]];
      case StepKind::kCompute: {
        const double scale = step.kind == StepKind::kOther ? 1 : replay_->replay.compute_scale;
        const double ps = static_cast<double>(step.value * kPsPerNs) * scale;
        actor.inside = false;
        if (static_cast<double>(clock) + ps > static_cast<double>(machine::kLastPs)) {
          return fail(replay_->replay.program.error(step.line, "this ends after 26 days"));
        }
        actor.memory_busy_ps = network_.memory_busy_ps(node_of(rank), clock);
        actor.stretched_ps = 0;
        clock += scale == 1 ? step.value * kPsPerNs : static_cast<std::int64_t>(ps);
        return;
      }
      case StepKind::kDo:
      case StepKind::kStart:
        if (!start(rank, step)) return;
        actor.waiting = step.kind == StepKind::kDo;
        break;
      case StepKind::kWait: actor.waiting = true; break;
    }
    actor.slot = step.slot;
    actor.inside = true;
    return;
  }
}

template <bool kFull>
void Simulation<kFull>::end_actor(std::uint32_t rank) {
  Actor& actor = replay_->actors[rank];
  actor.ended = true;
  actor.doing = nullptr;
  if (cores_.are_shared()) cores_.end(rank);
  if (actor.since_ps > last_end_ || ended_ == 0) {
    last_end_ = actor.since_ps;
    last_rank_ = rank;
    last_path_ = clock_path_of(rank);
  }
  ++ended_;
}

template <bool kFull>
bool Simulation<kFull>::start(std::uint32_t rank, const program::Step& step) {
  const program::Call& call = replay_->replay.program.calls[step.call];
  const program::TeamTable::Place place = replay_->teams.find(call.teams, static_cast<Rank>(rank));
  Flight* const flight = take_off(rank, step, place);
  if (flight == nullptr) return false;
  const std::uint32_t id = flight->base + static_cast<std::uint32_t>(place.member);
  RankState& state = state_of(id);
  Actor& actor = replay_->actors[rank];
  state.call = &call;
  state.slot = step.slot;
  actor.slots[step.slot] = {.call = step.call, .in_flight = true};
  ++flight->started;
  ++replay_->report.kinds.at(static_cast<std::size_t>(call.collective)).starts;
  if (!replay_->servlets.empty() && step.kind == program::StepKind::kStart) {
    hand_over(id);
    return true;
  }
  actor.members.push_back(id);
  if (clock_of(rank) > states_[rank].cpu) states_[rank].path = clock_path_of(rank);
  begin(id, std::max(states_[rank].cpu, clock_of(rank)));
  if (status_.code() == Code::kUnsupported) {
    status_ = replay_->replay.program.error(step.line, std::string(status_.message()));
  }
  return status_.ok();
}

// The flight that the rank's step belongs to; the first rank that comes makes it.
template <bool kFull>
Flight* Simulation<kFull>::take_off(std::uint32_t rank, const program::Step& step,
                                    program::TeamTable::Place place) {
  const program::Call& call = replay_->replay.program.calls[step.call];
  const std::uint32_t sequence = replay_->actors[rank].sequences[place.team]++;
  std::unique_ptr<Flight>& flight = replay_->flights[{place.team, sequence}];
  if (flight) {
    if (Status status = match(*flight, rank, step); !status.ok()) {
      fail(status);
      return nullptr;
    }
    return flight.get();
  }
  Result<ReplayState::Plan*> plan = plan_of(call, place.team);
  if (!plan.ok()) {
    const std::string why(plan.status().message());
    fail(plan.status().code() == Code::kTimeout ? plan.status()
                                                : replay_->replay.program.error(step.line, why));
    return nullptr;
  }
  const std::vector<Rank>& ranks = replay_->teams.members(place.team);
  const auto size = static_cast<Rank>(ranks.size());
  std::vector<std::uint32_t>& bases = replay_->free_bases[size];
  if (bases.empty()) {
    bases.push_back(replay_->next_base);
    replay_->next_base += static_cast<std::uint32_t>(size);
    while (members_.size() * kMembers < replay_->next_base - ranks_) {
      members_.push_back(std::make_unique<RankState[]>(kMembers));
    }
  }
  flight = std::make_unique<Flight>(Flight{.job = &plan.value()->job,
                                           .emission = plan.value()->emission.get(),
                                           .base = bases.back(),
                                           .team = place.team,
                                           .sequence = sequence,
                                           .first_call = &call,
                                           .first_rank = static_cast<Rank>(rank)});
  bases.pop_back();
  ++replay_->report.kinds.at(static_cast<std::size_t>(call.collective)).calls;
  for (Rank member = 0; member < size; ++member) {
    RankState& state = state_of(flight->base + static_cast<std::uint32_t>(member));
    state = RankState();
    state.flight = flight.get();
    state.owner = static_cast<std::uint32_t>(ranks[static_cast<std::size_t>(member)]);
    state.agent = state.owner;
  }
  return flight.get();
}

// Which algorithm does the call on this team, and its emission.
template <bool kFull>
Result<ReplayState::Plan*> Simulation<kFull>::plan_of(const program::Call& call,
                                                      std::uint32_t team) {
  const bool tables = has_tables(call.collective);
  std::unique_ptr<ReplayState::Plan>& plan = replay_->plans[{tables ? nullptr : &call, team}];
  if (plan) return plan.get();
  const std::vector<Rank>& ranks = replay_->teams.members(team);
  std::shared_ptr<const Nodes>& nodes = replay_->nodes[team];
  if (!nodes) {
    std::vector<std::int32_t> node_of;
    for (const Rank rank : ranks) {
      node_of.push_back(nodes_ != nullptr ? nodes_->node_of(rank) : 0);
    }
    nodes = std::make_shared<Nodes>(node_of);
  }
  Result<Job> job = replay_->replay.job_of({.collective = call.collective,
                                            .ranks = static_cast<Rank>(ranks.size()),
                                            .root = call.root,
                                            .count = call.count,
                                            .element_bytes = call.element_bytes,
                                            .commutative = call.commutative},
                                           nodes);
  if (!job.ok()) return job.status();
  auto made = std::make_unique<ReplayState::Plan>(ReplayState::Plan{job.value(), nullptr});
  made->emission = std::make_unique<Emission>(made->job, &compiler_);
  // Tables are known when their ranks come; their schedules are emitted whole.
  made->emission->stop_if(options_.stops);
  if (!tables) {
    if (Status status = made->emission->prepare(options_); !status.ok()) return status;
  }
  plan = std::move(made);
  return plan.get();
}

// Whether the rank's call is the one that others have started.
template <bool kFull>
Status Simulation<kFull>::match(const Flight& flight, std::uint32_t rank,
                                const program::Step& step) const {
  const program::Program& program = replay_->replay.program;
  const program::Call& call = program.calls[step.call];
  const auto refuse = [&](Rank other, const program::Call& theirs, const std::string& how) {
    return program.error(step.line, "call " + std::to_string(flight.sequence + 1) + " on team " +
                                        replay_->teams.name(flight.team) + how + ": rank " +
                                        std::to_string(rank) + " calls " + detail::describe(call) +
                                        ", rank " + std::to_string(other) + " (call " +
                                        theirs.name + ", line " + std::to_string(theirs.line) +
                                        ") " + detail::describe(theirs));
  };
  if (!detail::is_same_call(call, *flight.first_call)) {
    return refuse(flight.first_rank, *flight.first_call, " is not the same on all ranks");
  }
  if (!has_tables(call.collective)) return {};
  const std::vector<Rank>& ranks = replay_->teams.members(flight.team);
  const auto own =
      static_cast<std::size_t>(replay_->teams.find(call.teams, static_cast<Rank>(rank)).member);
  for (std::size_t other = 0; other < ranks.size(); ++other) {
    const program::Call* const theirs =
        state_of(flight.base + static_cast<std::uint32_t>(other)).call;
    if (theirs == nullptr || (theirs->send_bytes[own] == call.recv_bytes[other] &&
                              theirs->recv_bytes[own] == call.send_bytes[other])) {
      continue;
    }
    return refuse(ranks[other], *theirs, " has tables that do not fit");
  }
  return {};
}

template <bool kFull>
void Simulation<kFull>::end_member(std::uint32_t id, std::int64_t end) {
  RankState& state = state_of(id);
  Actor::Slot& slot = replay_->actors[state.owner].slots[state.slot];
  cpu_of(id) = std::max(cpu_of(id), end);
  slot.in_flight = false;
  slot.end_ps = slot.handed_over ? tell_owner(id, end) : end;
  slot.path = path_of(id);
  std::erase(members_of(state.agent), id);
  ++state.flight->ended;
  land(state.flight);
}

// Gives the flight's numbers back once nothing more can come for them.
template <bool kFull>
void Simulation<kFull>::land(Flight* flight) {
  const auto size = static_cast<Rank>(replay_->teams.members(flight->team).size());
  if (flight->ended < size || flight->releases > 0) return;
  replay_->free_bases[size].push_back(flight->base);
  replay_->flights.erase({flight->team, flight->sequence});
}

// Says who waits for whom.
template <bool kFull>
void Simulation<kFull>::stuck() {
  const program::Program& program = replay_->replay.program;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const Actor& actor = replay_->actors[rank];
    if (actor.ended) continue;
    const bool handed_over = actor.slots[actor.slot].handed_over;
    const auto servlet = handed_over ? ranks_ + static_cast<std::uint32_t>(node_of(rank)) : rank;
    for (const std::uint32_t id : members_of(servlet)) {
      const RankState& state = state_of(id);
      if (state.owner != rank || state.slot != actor.slot) continue;
      const Flight& flight = *state.flight;
      const std::vector<Rank>& ranks = replay_->teams.members(flight.team);
      std::size_t missing = 0;
      while (missing < ranks.size() &&
             state_of(flight.base + static_cast<std::uint32_t>(missing)).call != nullptr) {
        ++missing;
      }
      const std::string what = "rank " + std::to_string(rank) + " waits for ever in " +
                               detail::describe(*state.call) + ", call " +
                               std::to_string(flight.sequence + 1) + " on team " +
                               replay_->teams.name(flight.team);
      return fail(program.error(
          actor.body->steps[actor.next - 1].line,
          missing == ranks.size()
              ? what + ", though all ranks have started it; a defect of carillon"
              : what + ", which rank " + std::to_string(ranks[missing]) + " does not start"));
    }
  }
}

// The critical path, with what ranks do on it cut where a step of their program ends.
template <bool kFull>
std::vector<PathStep> Simulation<kFull>::path_of_program() const {
  std::vector<PathStep> path;
  for (const PathStep& stretch : trace_path()) {
    if (stretch.from != stretch.rank || !stretch.what.empty()) {
      path.push_back(stretch);
      continue;
    }
    const std::vector<StepSpan>& spans =
        replay_->actors[static_cast<std::size_t>(stretch.rank)].spans;
    auto span = std::partition_point(spans.begin(), spans.end(), [&](const StepSpan& each) {
      return each.end_ps <= stretch.begin_ps;
    });
    for (; span != spans.end() && span->begin_ps < stretch.end_ps; ++span) {
      path.push_back(stretch);
      path.back().begin_ps = std::max(stretch.begin_ps, span->begin_ps);
      path.back().end_ps = std::min(stretch.end_ps, span->end_ps);
      path.back().what = span->what;
    }
  }
  return path;
}

template <bool kFull>
Result<ReplayReport> Simulation<kFull>::run_replay() {
  if (Status status = check(); !status.ok()) return status;
  if (cores_.are_shared() && replay_->replay.progress != Progress::kCaller) {
    return Status(Code::kUnsupported,
                  "machine " + machine_.name +
                      " has fewer cores than ranks: there are none for who makes progress");
  }
  if (Status status = check_servlets(); !status.ok()) return status;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    state_of(rank).owner = state_of(rank).agent = rank;
  }
  begin_ranks();
  Status status = run_windows();
  ReplayReport& report = replay_->report;
  report.interrupted = status.code() == Code::kTimeout;
  if (status.ok() && ended_ < ranks_) {
    stuck();
    status = status_;
  }
  if (!status.ok() && !report.interrupted) return status;
  report.messages = report_.messages;
  report.bytes = report_.bytes;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    report.ranks[rank].end_ps = replay_->actors[rank].since_ps - first_begin_;
    report.total_ps = std::max(report.total_ps, report.ranks[rank].end_ps);
  }
  if (options_.critical_path && !report.interrupted) report.critical_path = path_of_program();
  return std::move(report);
}

}  // namespace carillon::sim
