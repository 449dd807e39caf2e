// SPDX-License-Identifier: Apache-2.0
//
// Simulation: time passes, window by window.
#include "sim/simulation.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>

#include "sim/simulation_aggregate-inl.h"
#include "sim/simulation_lending-inl.h"
#include "sim/simulation_message-inl.h"
#include "sim/simulation_rank-inl.h"
#include "sim/simulation_reception-inl.h"
#include "sim/simulation_replay-inl.h"
#include "sim/simulation_servlet-inl.h"

namespace carillon::sim {
namespace {

// SplitMix64 of the rank's place in the sequence that the seed begins.
std::uint64_t random_of(std::uint64_t seed, std::uint64_t rank) {
  std::uint64_t x = (seed * 0xd1342543de82ef95U + rank + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

std::int32_t node_count(const Nodes* nodes) { return nodes != nullptr ? nodes->count() : 1; }

// Windows no longer than the latency between nodes, through switches that reduce, too; within one
// host there is but one window.
std::int32_t window_shift(std::int32_t hosts, const machine::Machine& machine) {
  if (hosts == 1) return 62;
  std::int64_t latency = machine.network.latency_ps;
  if (machine.in_switch.ports > 0) {
    latency = std::min(latency, 2 * machine::to_switch_ps(machine.in_switch));
  }
  const auto longest = static_cast<std::uint64_t>(std::max<std::int64_t>(latency, 1));
  return static_cast<std::int32_t>(std::bit_width(longest)) - 1;
}

}  // namespace

template <bool kFull>
Simulation<kFull>::Simulation(const Nodes* nodes, Rank ranks, bool single,
                              const machine::Machine& machine, const Options& options)
    : machine_(machine),
      options_(options),
      nodes_(nodes),
      cores_(machine.node, machine.shared_memory.overhead_ps, nodes, ranks),
      single_(single && !cores_.are_shared()),
      careful_(!single_ || machine.bus.half_duplex),
      sparse_(!kFull && !careful_),
      ranks_(static_cast<std::uint32_t>(ranks)),
      transfers_(machine),
      empty_(transfers_.index({.entries = 0}, OpKind::kSignal)),
      compiler_(machine, &transfers_),
      network_(machine, node_count(nodes), sparse_ ? &places_ : nullptr),
      inboxes_(ranks_),
      states_(sparse_ ? 1 : ranks_, ranks_ + 1),
      places_(sparse_ ? ranks_ : 0),
      calendar_(window_shift(
          single_ ? node_count(nodes) : (node_count(nodes) - 1) / machine.node.nodes_per_host + 1,
          machine)),
      path_(1) {}

template <bool kFull>
Simulation<kFull>::Simulation(const Job& job, const machine::Machine& machine,
                              const Options& options)
    : Simulation(job.call.limits.nodes.get(), job.call.shared.ranks,
                 node_count(job.call.limits.nodes.get()) == job.call.shared.ranks, machine,
                 options) {
  using Sharing = Emission::Sharing;
  emission_.emplace(job, &compiler_, kFull ? Sharing::kNever : Sharing::kWhereAlike);
  if (emission_->shares()) peers_ = job.symmetry.peers;
  domains_ = job.call.limits.domains.get();
  only_ = {.job = &job, .emission = &*emission_};
}

template <bool kFull>
bool Simulation<kFull>::before(const Event& a, const Event& b) {
  const auto order = [](const Event& e) {
    return std::tuple(e.time, e.word & 7, e.rank, e.from, e.number, e.word);
  };
  return order(a) < order(b);
}

template <bool kFull>
Status Simulation<kFull>::check() const {
  const auto bad = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  if (ranks_ < 1) return bad("a team has at least one rank");
  if (nodes_ != nullptr && nodes_->ranks() != static_cast<Rank>(ranks_)) {
    return bad("nodes of " + std::to_string(nodes_->ranks()) + " ranks, a team of " +
               std::to_string(ranks_));
  }
  if (node_count(nodes_) > 1 && machine_.network.latency_ps < 1) {
    return bad("machine " + machine_.name + ": a network without latency cannot be simulated");
  }
  if (node_count(nodes_) > 1 && machine_.in_switch.ports > 0 && machine_.in_switch.link_ps < 1) {
    return bad("machine " + machine_.name + ": switches without delay cannot be simulated");
  }
  if (!options_.starts_ps.empty() && options_.starts_ps.size() != ranks_) {
    return bad(std::to_string(options_.starts_ps.size()) + " starting times for " +
               std::to_string(ranks_) + " ranks");
  }
  const auto negative = [](std::int64_t start) { return start < 0; };
  if (options_.skew_ps < 0 ||
      std::any_of(options_.starts_ps.begin(), options_.starts_ps.end(), negative)) {
    return bad("a rank begins before time 0");
  }
  return {};
}

template <bool kFull>
std::int64_t Simulation<kFull>::begin_of(std::uint32_t id) const {
  if (!options_.starts_ps.empty()) return options_.starts_ps[id];
  if (options_.skew_ps == 0) return 0;
  const auto range = static_cast<unsigned __int128>(options_.skew_ps) + 1;
  return static_cast<std::int64_t>(random_of(options_.seed, id) * range >> 64);
}

template <bool kFull>
void Simulation<kFull>::begin_rank(std::uint32_t id, std::int64_t time) {
  if constexpr (kFull) {
    if (replay_) return id < ranks_ ? begin_actor(id, time) : pick_up(id, time);
  }
  begin(id, time);
  run(id);
}

template <bool kFull>
void Simulation<kFull>::begin_ranks() {
  for (std::uint32_t rank = 0; rank < ranks_ && status_.ok(); ++rank) {
    Event event;
    event.time = begin_of(rank);
    event.rank = rank;
    event.word = Subject{.kind = EventKind::kBegin}.word();
    first_begin_ = std::min(first_begin_, event.time);
    if (careful_ || !begin_early(rank, event.time)) calendar_.push(event);
  }
}

// A rank whose part begins with a wait needs no event: whenever it begins, nothing has come yet
// that would not wait for it. Not if ranks share something, of which it might take its share too
// early.
template <bool kFull>
bool Simulation<kFull>::begin_early(std::uint32_t id, std::int64_t time) {
  if constexpr (kFull) {
    if (replay_) return false;
  }
  if (!sparse_) {
    begin_now(id, time);
    return true;
  }
  if (emission_->shares()) {
    const std::uint32_t known = emission_->class_of(static_cast<Rank>(id), &status_);
    places_[id] = kWaits | known;
    if (emission_->begins_with_wait(known) || !status_.ok()) return true;
  }
  wake_up(id);
  return true;
}

template <bool kFull>
void Simulation<kFull>::begin_now(std::uint32_t id, std::int64_t time) {
  begin(id, time);
  if (!status_.ok()) return;
  RankState& state = state_of(id);
  StrandState* const strand = &state.first;
  const Step* const step = shares_cpu(state) ? nullptr : find_step(id, strand);
  if (step != nullptr && is_incoming(step->kind)) {
    await(id, strand, *step);
  } else if (strand->state != StrandState::State::kDone) {
    wake_at(id, strand->ready);
  }
}

// Gives the rank of a sparse simulation a state, unless it has one; false: it has ended.
template <bool kFull>
bool Simulation<kFull>::wake_up(std::uint32_t id) {
  if (has_state(id)) return true;
  if (places_[id] == kEnded) return false;
  beginning_class_ = places_[id] & ~kWaits;
  if (free_places_.empty()) {
    places_[id] = static_cast<std::uint32_t>(states_.size());
    states_.add();
  } else {
    places_[id] = free_places_.back();
    free_places_.pop_back();
  }
  network_.renew(places_[id]);
  begin_now(id, begin_of(id));
  return has_state(id);
}

// The rank has ended, and its NIC has sent everything.
template <bool kFull>
void Simulation<kFull>::forget(std::uint32_t id) {
  state_of(id) = RankState();
  free_places_.push_back(places_[id]);
  places_[id] = kEnded;
}

// One of its long sends has been granted.
template <bool kFull>
void Simulation<kFull>::granted(std::uint32_t id) {
  if (!sparse_) return;
  RankState& state = state_of(id);
  if (--state.asking == 0 && state.over) forget(id);
}

// What the events after this one need, a few events ahead: first a rank's state, then what that
// points to. (Always inline: else GCC takes it for a function that does nothing, and leaves it
// out.)
template <bool kFull>
[[gnu::always_inline]] inline void Simulation<kFull>::prefetch(const HugeVector<Event>& events,
                                                               std::size_t at) const {
  constexpr std::size_t kFarthest = 32, kFar = 16, kNear = 8, kLine = 64;
  if (sparse_ && at + kFarthest < events.size()) {
    __builtin_prefetch(&places_[events[at + kFarthest].rank]);
  }
  if (at + kFar < events.size()) {
    const std::uint32_t rank = events[at + kFar].rank;
    const std::uint32_t place = !sparse_ ? rank : has_state(rank) ? places_[rank] : 0;
    const auto* const state = reinterpret_cast<const char*>(&states_[place]);
    for (std::size_t i = 0; i < sizeof(RankState); i += kLine) __builtin_prefetch(state + i);
    network_.prefetch(place);
  }
  if (at + kNear < events.size()) {
    const std::uint32_t rank = events[at + kNear].rank;
    if (peers_ != Symmetry::Peers::kOwn || !has_state(rank)) return;
    const Part& part = state_of(rank).first.parts.part;
    const auto* const peers = reinterpret_cast<const char*>(part.peers);
    __builtin_prefetch(peers);
    __builtin_prefetch(peers + kLine);
  }
}

template <bool kFull>
Status Simulation<kFull>::run_windows() {
  HugeVector<Event> events;
  const auto last_host = static_cast<std::uint32_t>(node_count(nodes_) - 1);
  const auto host = [&](const Event& event) { return host_of(event.rank); };
  while (status_.ok() && calendar_.next_window()) {
    window_end_ = calendar_.window_end();
    while (status_.ok() && calendar_.take(&events, last_host, host)) {
      for (std::size_t i = 0; i < events.size();) {
        std::size_t end = i + 1;
        const std::uint32_t here = host(events[i]);
        while (end < events.size() && host(events[end]) == here) ++end;
        if (end > i + 1) std::sort(&events[i], events.data() + end, before);
        if (single_) prefetch(events, i);
        run_host(&events[i], events.data() + end);
        i = end;
      }
    }
  }
  return status_;
}

template <bool kFull>
void Simulation<kFull>::run_host(const Event* first, const Event* last) {
  next_event_ = first;
  last_event_ = last;
  delivers_until_ = -1;
  for (const Event* event = first; event != last; ++event) {
    if (is_deliver(*event)) delivers_until_ = event->time;
  }
  while (status_.ok()) {
    const bool listed = next_event_ != last_event_;
    if (!soon_.empty() && (!listed || before(soon_.top(), *next_event_))) {
      const Event event = soon_.top();
      soon_.pop();
      happen(event);
    } else if (listed) {
      happen(*next_event_++);
    } else {
      return;
    }
  }
}

template <bool kFull>
void Simulation<kFull>::push(const Event& event) {
  check_time(event.time);
  if (event.time < window_end_) {
    if (is_deliver(event)) delivers_until_ = std::max(delivers_until_, event.time);
    soon_.push(event);
  } else {
    calendar_.push(event);
  }
}

// How far the rank may go on. What happens at this moment may always go on.
template <bool kFull>
std::int64_t Simulation<kFull>::limit_of(const RankState& rank) const {
  if (!careful_ && !shares_cpu(rank)) return window_end_;
  std::int64_t limit = window_end_;
  if (next_event_ != last_event_) limit = std::min(limit, next_event_->time);
  if (!soon_.empty()) limit = std::min(limit, soon_.top().time);
  return std::max(limit, now_ + 1);
}

template <bool kFull>
void Simulation<kFull>::happen(const Event& event) {
  now_ = event.time;
  node_ = single_ ? static_cast<std::int32_t>(event.rank) : node_of(event.rank);
  constexpr std::uint32_t kOften = 64;
  if (options_.on_progress && ++events_ % kOften == 0 && !options_.on_progress(report_.messages)) {
    return fail(interrupted());
  }
  const EventKind kind = Subject::of(event.word).kind;
  const bool is_message = kind == EventKind::kMessage || kind == EventKind::kDeliver;
  if (!is_message && !has_state(event.rank)) return;
  switch (kind) {
    case EventKind::kRelease: return released(event);
    case EventKind::kDeliver: return deliver(event);
    case EventKind::kMessage: return receive(event);
    case EventKind::kBegin: return begin_rank(event.rank, event.time);
    case EventKind::kTakeOver: return take_over(event);
    case EventKind::kWake:
      if (state_of(event.rank).wake != event.time) return;  // it has been woken earlier
      state_of(event.rank).wake = INT64_MAX;
      return run(event.rank);
  }
}

// From the end back to the beginning.
template <bool kFull>
std::vector<PathStep> Simulation<kFull>::trace_path() const {
  std::uint32_t node = last_path_;
  auto rank = static_cast<Rank>(last_rank_);
  std::int64_t end = last_end_;
  std::vector<PathStep> path;
  while (node != 0) {
    const PathNode& message = path_[node];
    path.push_back({rank, rank, message.came, end});
    path.push_back({message.from, rank, message.sent, message.came});
    if (message.call != nullptr) path.back().what = message.call->name;
    rank = message.from;
    end = message.sent;
    node = message.previous;
  }
  path.push_back({rank, rank, begin_of(static_cast<std::uint32_t>(rank)), end});
  std::reverse(path.begin(), path.end());
  return path;
}

template <bool kFull>
Result<Report> Simulation<kFull>::report() {
  if (ended_ < ranks_) {
    for (std::uint32_t id = 0; id < ranks_; ++id) {
      if (!wake_up(id)) continue;
      const StrandState* const stuck = find_strand(&state_of(id), [](const StrandState& strand) {
        return strand.state != StrandState::State::kDone;
      });
      if (stuck == nullptr) continue;
      return Status(Code::kInternal, "deadlock: rank " + std::to_string(id) + " waits for rank " +
                                         std::to_string(stuck->key.peer()) +
                                         " for ever; carillon verify says why");
    }
  }
  report_.latency_ps = last_end_ - first_begin_;
  if (options_.critical_path) report_.critical_path = trace_path();
  return std::move(report_);
}

template <bool kFull>
Result<Report> Simulation<kFull>::run() {
  if (Status status = check(); !status.ok()) return status;
  if (Status status = emission_->prepare(options_); !status.ok()) return status;
  if (options_.rank_times) report_.rank_ps.resize(ranks_);
  begin_ranks();
  if (Status status = run_windows(); !status.ok()) return status;
  return report();
}

std::string_view activity_name(Activity activity) {
  constexpr std::array<std::string_view, kActivities> kNames{"send", "wait", "copy", "reduce"};
  return kNames.at(static_cast<std::size_t>(activity));
}

namespace {

// Where lists are put as they are, so is what lies together: nothing is copied first. How long
// lists can be is then what the team has agreed on, and longer ones go in parts.
machine::Machine with_lists(machine::Machine machine, std::int32_t gather_entries) {
  if (gather_entries <= 1) return machine;
  machine.one_sided.stage_puts = false;
  machine.two_sided.copy_in = machine.two_sided.copy_out = false;
  machine.network.max_entries = gather_entries;
  machine.network.cuts_lists = true;
  return machine;
}

}  // namespace

Result<ReplayReport> replay(const Replay& replay, const machine::Machine& described,
                            const Options& options) {
  const machine::Machine machine = with_lists(described, replay.gather_entries);
  return std::make_unique<Simulation<true>>(replay, machine, options)->run_replay();
}

Result<Report> simulate(const Job& job, const machine::Machine& described, const Options& options) {
  const machine::Machine machine = with_lists(described, job.call.limits.gather_entries);
  if (options.critical_path || options.on_span) {
    return std::make_unique<Simulation<true>>(job, machine, options)->run();
  }
  return std::make_unique<Simulation<false>>(job, machine, options)->run();
}

}  // namespace carillon::sim
