// SPDX-License-Identifier: Apache-2.0
//
// Simulation: time passes, window by window.
#include "sim/simulation.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>

#include "sim/simulation_message-inl.h"
#include "sim/simulation_rank-inl.h"

namespace carillon::sim {
namespace {

// SplitMix64 of the rank's place in the sequence that the seed begins.
std::uint64_t random_of(std::uint64_t seed, std::uint64_t rank) {
  std::uint64_t x = (seed * 0xd1342543de82ef95U + rank + 1) * 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

std::int32_t node_count(const Job& job) {
  return job.call.limits.nodes ? job.call.limits.nodes->count() : 1;
}

// Windows no longer than the latency between nodes; within one node there is but one window.
std::int32_t window_shift(const Job& job, const machine::Machine& machine) {
  if (node_count(job) == 1) return 62;
  const auto latency =
      static_cast<std::uint64_t>(std::max<std::int64_t>(machine.network.latency_ps, 1));
  return static_cast<std::int32_t>(std::bit_width(latency)) - 1;
}

}  // namespace

template <bool kTraced>
Simulation<kTraced>::Simulation(const Job& job, const machine::Machine& machine,
                                const Options& options)
    : job_(job),
      machine_(machine),
      options_(options),
      nodes_(job.call.limits.nodes.get()),
      single_(node_count(job) == job.call.shared.ranks),
      careful_(!single_ || machine.bus.half_duplex),
      ranks_(static_cast<std::uint32_t>(job.call.shared.ranks)),
      transfers_(machine),
      empty_(transfers_.index({.entries = 0}, OpKind::kSignal)),
      emission_(job, machine, &transfers_),
      network_(machine, node_count(job)),
      inboxes_(ranks_),
      states_(ranks_),
      calendar_(window_shift(job, machine)),
      path_(1) {}

template <bool kTraced>
bool Simulation<kTraced>::before(const Event& a, const Event& b) {
  const auto order = [](const Event& e) {
    return std::tuple(e.time, e.word & 7, e.rank, e.from, e.number, e.word);
  };
  return order(a) < order(b);
}

template <bool kTraced>
Status Simulation<kTraced>::check() const {
  const auto bad = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  if (job_.call.shared.ranks < 1) return bad("a team has at least one rank");
  if (nodes_ != nullptr && nodes_->ranks() != job_.call.shared.ranks) {
    return bad("nodes of " + std::to_string(nodes_->ranks()) + " ranks, a team of " +
               std::to_string(ranks_));
  }
  if (node_count(job_) > 1 && machine_.network.latency_ps < 1) {
    return bad("machine " + machine_.name + ": a network without latency cannot be simulated");
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

template <bool kTraced>
std::int64_t Simulation<kTraced>::begin_of(std::uint32_t id) const {
  if (!options_.starts_ps.empty()) return options_.starts_ps[id];
  if (options_.skew_ps == 0) return 0;
  const auto range = static_cast<std::uint64_t>(options_.skew_ps) + 1;
  return static_cast<std::int64_t>(random_of(options_.seed, id) % range);
}

template <bool kTraced>
void Simulation<kTraced>::begin_ranks() {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    Event event;
    event.time = begin_of(rank);
    event.rank = rank;
    event.word = Subject{.kind = EventKind::kBegin}.word();
    first_begin_ = std::min(first_begin_, event.time);
    calendar_.push(event);
  }
}

// What the events after this one need, a few events ahead: first a rank's state, then what that
// points to. (Always inline: else GCC takes it for a function that does nothing, and leaves it
// out.)
template <bool kTraced>
[[gnu::always_inline]] inline void Simulation<kTraced>::prefetch(const std::vector<Event>& events,
                                                                 std::size_t at) const {
  constexpr std::size_t kFar = 16, kNear = 8, kLine = 64;
  if (at + kFar < events.size()) {
    const std::uint32_t rank = events[at + kFar].rank;
    const auto* const state = reinterpret_cast<const char*>(&states_[rank]);
    for (std::size_t i = 0; i < sizeof(RankState); i += kLine) __builtin_prefetch(state + i);
    network_.prefetch(static_cast<std::int32_t>(rank));
  }
  if (at + kNear < events.size()) {
    const Part& part = states_[events[at + kNear].rank].first.parts.part;
    const auto* const peers = reinterpret_cast<const char*>(part.peers);
    __builtin_prefetch(peers);
    __builtin_prefetch(peers + kLine);
  }
}

template <bool kTraced>
Status Simulation<kTraced>::run_windows() {
  std::vector<Event> events;
  std::vector<Event> spare;
  const auto last_node = static_cast<std::uint32_t>(node_count(job_) - 1);
  const auto node = [&](const Event& event) {
    return single_ ? event.rank : static_cast<std::uint32_t>(node_of(event.rank));
  };
  while (status_.ok() && calendar_.take(&events)) {
    window_end_ = calendar_.window_end();
    sort_by(&events, &spare, last_node, node);
    for (std::size_t i = 0; i < events.size();) {
      std::size_t end = i + 1;
      const std::uint32_t here = node(events[i]);
      while (end < events.size() && node(events[end]) == here) ++end;
      if (end > i + 1) std::sort(&events[i], events.data() + end, before);
      if (single_) prefetch(events, i);
      node_ = static_cast<std::int32_t>(here);
      run_node(&events[i], events.data() + end);
      i = end;
    }
  }
  return status_;
}

template <bool kTraced>
void Simulation<kTraced>::run_node(const Event* first, const Event* last) {
  next_event_ = first;
  last_event_ = last;
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

template <bool kTraced>
void Simulation<kTraced>::push(const Event& event) {
  if (event.time < window_end_) {
    soon_.push(event);
  } else {
    calendar_.push(event);
  }
}

// How far the rank may go on. What happens at this moment may always go on.
template <bool kTraced>
std::int64_t Simulation<kTraced>::limit_of(const RankState& rank) const {
  if (!careful_ && !has_strands(rank)) return window_end_;
  std::int64_t limit = window_end_;
  if (next_event_ != last_event_) limit = std::min(limit, next_event_->time);
  if (!soon_.empty()) limit = std::min(limit, soon_.top().time);
  return std::max(limit, now_ + 1);
}

template <bool kTraced>
void Simulation<kTraced>::happen(const Event& event) {
  now_ = event.time;
  constexpr std::uint32_t kOften = 64;
  if (options_.on_progress && ++events_ % kOften == 0 && !options_.on_progress(report_.messages)) {
    return fail({Code::kTimeout, "the simulation was interrupted"});
  }
  switch (Subject::of(event.word).kind) {
    case EventKind::kRelease: return released(event);
    case EventKind::kDeliver: return deliver(event);
    case EventKind::kMessage: return receive(event);
    case EventKind::kBegin: return begin(event.rank, event.time);
    case EventKind::kWake:
      if (states_[event.rank].wake != event.time) return;  // it has been woken earlier
      states_[event.rank].wake = INT64_MAX;
      return run(event.rank);
  }
}

// From the end back to the beginning.
template <bool kTraced>
void Simulation<kTraced>::trace_path() {
  std::uint32_t node = last_path_;
  auto rank = static_cast<Rank>(last_rank_);
  std::int64_t end = last_end_;
  std::vector<PathStep>& path = report_.critical_path;
  while (node != 0) {
    const PathNode& message = path_[node];
    path.push_back({rank, rank, message.came, end});
    path.push_back({message.from, rank, message.sent, message.came});
    rank = message.from;
    end = message.sent;
    node = message.previous;
  }
  path.push_back({rank, rank, begin_of(static_cast<std::uint32_t>(rank)), end});
  std::reverse(path.begin(), path.end());
}

template <bool kTraced>
Result<Report> Simulation<kTraced>::report() {
  if (ended_ < ranks_) {
    for (std::uint32_t id = 0; id < ranks_; ++id) {
      const StrandState* const stuck = find_strand(&states_[id], [](const StrandState& strand) {
        return strand.state != StrandState::State::kDone;
      });
      if (stuck == nullptr) continue;
      return Status(Code::kInternal, "deadlock: rank " + std::to_string(id) + " waits for rank " +
                                         std::to_string(stuck->key.peer()) +
                                         " for ever; carillon verify says why");
    }
  }
  report_.latency_ps = last_end_ - first_begin_;
  if (options_.critical_path) trace_path();
  return std::move(report_);
}

template <bool kTraced>
Result<Report> Simulation<kTraced>::run() {
  if (Status status = check(); !status.ok()) return status;
  if (Status status = emission_.prepare(options_); !status.ok()) return status;
  if (options_.rank_times) report_.rank_ps.resize(ranks_);
  begin_ranks();
  if (Status status = run_windows(); !status.ok()) return status;
  return report();
}

std::string_view activity_name(Activity activity) {
  constexpr std::array<std::string_view, kActivities> kNames{"send", "wait", "copy", "reduce"};
  return kNames.at(static_cast<std::size_t>(activity));
}

Result<Report> simulate(const Job& job, const machine::Machine& machine, const Options& options) {
  if (options.critical_path || options.on_span) {
    return std::make_unique<Simulation<true>>(job, machine, options)->run();
  }
  return std::make_unique<Simulation<false>>(job, machine, options)->run();
}

}  // namespace carillon::sim
