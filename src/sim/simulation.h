// SPDX-License-Identifier: Apache-2.0
//
// One simulation: the ranks' state, and what events do to it.
//
// Each rank has one CPU and runs its strands on it, the one first that could go on first. It runs
// ahead as far as nothing can come between: to the end of the window, or, where several ranks or
// strands share something, to the next event of its node.
#pragma once

#include <memory>
#include <optional>
#include <queue>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "sim/calendar.h"
#include "sim/emission.h"
#include "sim/huge.h"
#include "sim/inbox.h"
#include "sim/network.h"
#include "sim/sim.h"

namespace carillon::sim {

/// In the order in which events of the same time happen.
enum class EventKind : std::uint8_t { kRelease, kDeliver, kMessage, kBegin, kWake };

/// What a message is: the payload, or, before a long send, the request and the grant to send it.
enum class Role : std::uint8_t { kPayload, kRequest, kGrant };

/// What an event is about, in 32 bits.
struct Subject {
  EventKind kind = EventKind::kWake;
  Role role = Role::kPayload;
  bool credited = false;
  Channel channel = Channel::kPair;
  std::uint32_t transfer = 0;

  [[nodiscard]] std::uint32_t word() const {
    return static_cast<std::uint32_t>(kind) | flags() | static_cast<std::uint32_t>(channel) << 6 |
           transfer << 8;
  }
  static Subject of(std::uint32_t word) {
    return {static_cast<EventKind>(word & 7), static_cast<Role>(word >> 3 & 3),
            (word >> 5 & 1) != 0, static_cast<Channel>(word >> 6 & 3), word >> 8};
  }
  /// Role and credited: 0 of most messages.
  [[nodiscard]] std::uint32_t flags() const {
    return static_cast<std::uint32_t>(role) << 3 | (credited ? 1U : 0U) << 5;
  }
};

struct PlainEvent {
  std::int64_t time = 0;
  std::uint32_t rank = 0;  ///< whom it happens to
  std::uint32_t from = 0;
  std::uint32_t word = 0;  ///< Subject
  std::int32_t number = 0;
  [[nodiscard]] std::uint32_t path() const { return 0; }
  void set_path(std::uint32_t /*path*/) {}
};
struct TracedEvent : PlainEvent {
  std::uint32_t path_ = 0;
  [[nodiscard]] std::uint32_t path() const { return path_; }
  void set_path(std::uint32_t path) { path_ = path; }
};

template <bool kTraced>
class Simulation {
 public:
  Simulation(const Job& job, const machine::Machine& machine, const Options& options);
  Result<Report> run();

 private:
  using Event = std::conditional_t<kTraced, TracedEvent, PlainEvent>;

  struct StrandState {
    enum class State : std::uint8_t { kReady, kNeedsMessage, kNeedsCredit, kDone };
    StrandParts parts;
    std::int64_t ready = 0;   // when it can go on,
    std::int64_t since = -1;  // and since when it has tried the step it is at; -1: it has not
    MessageKey key;           // what it needs
    std::uint32_t step = 0;
    std::uint32_t loop = 0;      // the repeat it is in,
    std::int64_t rounds = 0;     // of which so many are left, this one included (0: in none),
    std::int32_t round = 0;      // and so many done
    State state = State::kDone;  // of a rank that has not begun, too
    bool posting = false;        // the CPU's part of the post it is at is done
    std::uint32_t path = 0;
  };
  struct Credit {
    std::int64_t posted = 0, released = 0;
  };
  struct Held {  // a message to be released
    std::uint32_t strand = 0, step = 0, writer = 0;
    Channel channel = Channel::kPair;
  };
  struct More {                        // what few ranks have
    std::vector<StrandState> strands;  // but the first
    std::unordered_map<std::uint64_t, Credit> credits;
    std::vector<Held> held;
  };
  struct RankState {
    StrandState first;
    std::int64_t cpu = 0;           // busy until
    std::int64_t wake = INT64_MAX;  // the next wake event
    Inbox inbox;
    std::unique_ptr<More> more;
  };
  struct Later {  // for a heap with the earliest on top
    bool operator()(const Event& a, const Event& b) const { return before(b, a); }
  };
  struct PathNode {
    std::uint32_t previous = 0;
    Rank from = 0, rank = 0;
    std::int64_t sent = 0, came = 0;
  };

  static bool before(const Event& a, const Event& b);
  [[nodiscard]] std::int32_t node_of(std::uint32_t rank) const {
    return nodes_ == nullptr ? 0 : nodes_->node_of(static_cast<Rank>(rank));
  }
  [[nodiscard]] bool is_local(std::uint32_t a, std::uint32_t b) const {
    return single_ ? a == b : node_of(a) == node_of(b);
  }

  // simulation.cc: time.
  Status check() const;
  void begin_ranks();
  Status run_windows();
  void prefetch(const std::vector<Event>& events, std::size_t at) const;
  void run_node(const Event* first, const Event* last);
  void push(const Event& event);
  [[nodiscard]] std::int64_t begin_of(std::uint32_t id) const;
  [[nodiscard]] std::int64_t limit_of(const RankState& rank) const;
  void happen(const Event& event);
  Result<Report> report();
  void trace_path();

  // simulation_rank-inl.h: what a rank does.
  void begin(std::uint32_t id, std::int64_t time);
  void run(std::uint32_t id);
  StrandState* next_strand(RankState* rank);
  void wake_at(std::uint32_t id, std::int64_t time);
  bool next_part(std::uint32_t id, StrandState* strand);
  const Step* find_step(std::uint32_t id, StrandState* strand);
  bool do_step(std::uint32_t id, StrandState* strand);
  void work(std::uint32_t id, StrandState* strand, const Step& step);
  void next_step(std::uint32_t id, StrandState* strand);
  void finish(std::uint32_t id);
  void spend(std::uint32_t id, StrandState* strand, std::int64_t until, Activity activity,
             const Step& step);
  void fail(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  [[nodiscard]] static std::uint32_t index_of(const RankState& rank, const StrandState* strand);
  [[nodiscard]] static bool has_strands(const RankState& rank) {
    return rank.more && !rank.more->strands.empty();
  }
  template <typename Body>
  static StrandState* find_strand(RankState* rank, Body body);
  [[nodiscard]] std::int64_t staging_ps(std::int64_t bytes, bool staged) const;

  // simulation_message-inl.h: messages.
  bool post(std::uint32_t id, StrandState* strand, const Step& step);
  void leave_cpu(std::uint32_t id, StrandState* strand, const Step& step, Subject subject);
  bool take_credit(std::uint32_t id, StrandState* strand, const Step& step);
  void send_between(std::uint32_t id, std::uint32_t to, std::int64_t time, Subject subject,
                    std::int32_t number, std::uint32_t path);
  bool await(std::uint32_t id, StrandState* strand, const Step& step);
  void complete(std::uint32_t id, StrandState* strand, const Arrived& arrived);
  void grant(std::uint32_t id, StrandState* strand, const Arrived& arrived);
  void receive(const Event& event);
  void deliver(const Event& event);
  void released(const Event& event);
  void release(std::uint32_t id, std::uint32_t strand, std::uint32_t step, std::int64_t time);
  void deliver_here(std::uint32_t id, const StrandState& strand, std::uint32_t to,
                    std::int64_t sent, std::int64_t time, Subject subject, std::int32_t number);
  std::uint32_t path_node(std::uint32_t path, std::uint32_t from, std::uint32_t to,
                          std::int64_t sent);
  static std::uint64_t channel_key(const StrandState& strand, const Step& step) {
    const std::uint64_t peer =
        step.channel == Channel::kAll ? 0xffffffff : strand.parts.part.peers[step.peer];
    return peer << 2 | static_cast<std::uint64_t>(step.channel);
  }

  const Job& job_;
  const machine::Machine& machine_;
  const Options& options_;
  const Nodes* nodes_;  // null: one
  bool single_;         // one rank per node
  bool careful_;        // ranks share something of their nodes
  std::uint32_t ranks_;
  TransferTable transfers_;
  std::uint32_t empty_;  // the transfer of nothing
  Emission emission_;
  Network network_;
  Inboxes inboxes_;
  HugeArray<RankState> states_;
  Calendar<Event> calendar_;
  // Of the node whose events are happening: what is still to come in this window.
  const Event* next_event_ = nullptr;
  const Event* last_event_ = nullptr;
  std::priority_queue<Event, std::vector<Event>, Later> soon_;
  std::int32_t node_ = 0;
  std::int64_t window_end_ = 0;
  std::int64_t now_ = 0;  // the time of the event that is happening
  std::vector<PathNode> path_;
  std::vector<StrandParts> beginning_;
  std::uint32_t events_ = 0;
  std::uint32_t ended_ = 0;
  std::int64_t first_begin_ = INT64_MAX, last_end_ = 0;
  std::uint32_t last_path_ = 0, last_rank_ = 0;
  Report report_;
  Status status_;
};

}  // namespace carillon::sim
