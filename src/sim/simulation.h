// SPDX-License-Identifier: Apache-2.0
//
// One simulation: the ranks' state, and what events do to it.
//
// Each rank has one CPU, its own or shared (cores.h), and runs its strands on it, the one first
// that could go on first. It runs ahead as far as nothing can come between: to the end of the
// window, or, where several ranks or strands share something, to the next event of its node.
//
// The full simulation does all that this folder can do: programs, spans, the critical path. The
// other one is the same for a single call without those, with less in its events and states. Where
// ranks share nothing it is also *sparse*: a rank has a state and a NIC from its first step, or the
// first message to it, to its end only, in memory that the next one uses again.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "sim/calendar.h"
#include "sim/cores.h"
#include "sim/emission.h"
#include "sim/huge.h"
#include "sim/inbox.h"
#include "sim/network.h"
#include "sim/replay_state.h"
#include "sim/sim.h"

namespace carillon::sim {

/// In the order in which events of the same time happen.
enum class EventKind : std::uint8_t { kRelease, kDeliver, kMessage, kBegin, kWake, kTakeOver };

/// What a message is: the payload, or, before a long send, the request and the grant to send it; or
/// of a multicast one more copy of the payload on a node that has it already, or the request to
/// send it again.
enum class Role : std::uint8_t { kPayload, kRequest, kGrant, kCopy };

/// What an event is about, in 32 bits.
struct Subject {
  EventKind kind = EventKind::kWake;
  Role role = Role::kPayload;
  bool credited = false;
  bool lent = false;
  Channel channel = Channel::kPair;
  std::uint32_t transfer = 0;

  [[nodiscard]] std::uint32_t word() const {
    return static_cast<std::uint32_t>(kind) | flags() | static_cast<std::uint32_t>(channel) << 6 |
           transfer << 10;
  }
  static Subject of(std::uint32_t word) {
    return {static_cast<EventKind>(word & 7),
            static_cast<Role>(word >> 3 & 3),
            (word >> 5 & 1) != 0,
            (word >> 9 & 1) != 0,
            static_cast<Channel>(word >> 6 & 7),
            word >> 10};
  }
  /// Role, credited and lent: 0 of most messages.
  [[nodiscard]] std::uint32_t flags() const {
    return static_cast<std::uint32_t>(role) << 3 | (credited ? 1U : 0U) << 5 |
           (lent ? 1U : 0U) << 9;
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

template <bool kFull>
class Simulation {
 public:
  Simulation(const Job& job, const machine::Machine& machine, const Options& options);
  Result<Report> run();
  /// Of a program; only the full one.
  Simulation(const Replay& replay, const machine::Machine& machine, const Options& options);
  Result<ReplayReport> run_replay();

 private:
  using Event = std::conditional_t<kFull, TracedEvent, PlainEvent>;

  struct StrandState {
    enum class State : std::uint8_t { kReady, kNeedsMessage, kNeedsCredit, kDone };
    StrandParts parts;
    std::int64_t ready = 0;   // when it can go on,
    std::int64_t since = -1;  // and since when it has tried the step it is at; -1: it has not
    MessageKey key;           // what it needs
    std::uint32_t step = 0;
    std::uint32_t loop = 0;      // the repeat it is in,
    std::int64_t rounds = 0;     // of which so many are left, this one included (0: in none),
    std::int32_t round = 0;      // and so many done; aggregate: what it has sent and taken
    State state = State::kDone;  // of a rank that has not begun, too
    bool posting = false;        // the CPU's part of the post it is at is done
    bool landed = false;         // the message it has taken last was read to where it stays

    // The CPU is free at `cpu`; what has been posted leaves when it was, whatever else is done
    // since.
    void begin_at(std::int64_t cpu) {
      if (!posting) ready = std::max(ready, cpu);
    }
  };
  struct Credit {
    std::int64_t posted = 0, released = 0;
  };
  struct Held {  // a message to be released
    std::uint32_t strand = 0, step = 0, writer = 0;
    Channel channel = Channel::kPair;
    bool credited = false, lent = false;
  };
  struct More {                        // what few ranks have
    std::vector<StrandState> strands;  // but the first
    std::unordered_map<std::uint64_t, Credit> credits;
    std::vector<Held> held;
    std::int64_t lent = 0;           // messages that are still to be read in its memory,
    std::int64_t lent_until_ps = 0;  // and when the last one had been
    std::int32_t stage = 0;          // of its schedules,
    bool goes_on = false;            // which another one follows
  };
  struct Nothing {};
  struct RankState : std::conditional_t<kFull, MemberState, Nothing> {
    StrandState first;
    std::int64_t cpu = 0;           // busy until
    std::int64_t wake = INT64_MAX;  // the next wake event
    Inbox inbox;
    std::unique_ptr<More> more;
    std::uint32_t asking = 0;  // long sends that wait for their grant: its NIC sends them,
    bool over = false;         // also when it has ended
  };
  struct Later {  // for a heap with the earliest on top
    bool operator()(const Event& a, const Event& b) const { return before(b, a); }
  };
  struct PathNode {
    std::uint32_t previous = 0;
    Rank from = 0, rank = 0;
    std::int64_t sent = 0, came = 0;
    const program::Call* call = nullptr;  // of a replay
  };

  Simulation(const Nodes* nodes, Rank ranks, bool single, const machine::Machine& machine,
             const Options& options);

  static bool before(const Event& a, const Event& b);
  static bool is_deliver(const Event& event) {
    return Subject::of(event.word).kind == EventKind::kDeliver;
  }
  // Of a rank, or of a member (replay_state.h).
  [[nodiscard]] RankState& state_of(std::uint32_t id) {
    if constexpr (kFull) {
      if (id >= ranks_) return members_[(id - ranks_) / kMembers][(id - ranks_) % kMembers];
    }
    return states_[sparse_ ? places_[id] : id];
  }
  [[nodiscard]] const RankState& state_of(std::uint32_t id) const {
    return const_cast<Simulation*>(this)->state_of(id);
  }
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t id) const {
    if constexpr (kFull) {
      if (replay_) return state_of(id).owner;
    }
    return id;
  }
  // Whose CPU does its work.
  [[nodiscard]] std::uint32_t agent_of(std::uint32_t id) const {
    if constexpr (kFull) {
      if (replay_) return state_of(id).agent;
    }
    return id;
  }
  [[nodiscard]] std::int64_t& cpu_of(std::uint32_t id) { return state_of(agent_of(id)).cpu; }
  [[nodiscard]] Flight& flight_of(std::uint32_t id) {
    if constexpr (kFull) {
      if (replay_) return *state_of(id).flight;
    }
    return only_;
  }
  [[nodiscard]] const Flight& flight_of(std::uint32_t id) const {
    return const_cast<Simulation*>(this)->flight_of(id);
  }
  [[nodiscard]] Local local_of(std::uint32_t id) const {
    if constexpr (kFull) {
      if (replay_) return state_of(id).call->local();
    }
    return emission_->local_of(static_cast<Rank>(id));
  }
  [[nodiscard]] std::int32_t node_of(std::uint32_t id) const {
    return nodes_ == nullptr ? 0 : nodes_->node_of(static_cast<Rank>(owner_of(id)));
  }
  // Events of a host happen in the order of their times; its number, as the calendar sorts by it.
  [[nodiscard]] std::uint32_t host_of(std::uint32_t id) const {
    return single_ ? id : static_cast<std::uint32_t>(node_of(id) / machine_.node.nodes_per_host);
  }
  // Its node, as the network knows it.
  [[nodiscard]] std::int32_t place_of(std::uint32_t id) const {
    return single_ ? static_cast<std::int32_t>(id) : node_of(id);
  }
  [[nodiscard]] bool is_local(std::uint32_t a, std::uint32_t b) const {
    return single_ ? a == b : node_of(a) == node_of(b);
  }

  // Whether the message, of the same node, comes from another NUMA domain.
  [[nodiscard]] bool crosses(std::uint32_t from, std::uint32_t to) const {
    return domains_ != nullptr && is_local(from, to) &&
           domains_->node_of(static_cast<Rank>(from)) != domains_->node_of(static_cast<Rank>(to));
  }

  // simulation.cc: time.
  Status check() const;
  void begin_ranks();
  bool begin_early(std::uint32_t id, std::int64_t time);
  void begin_now(std::uint32_t id, std::int64_t time);
  bool wake_up(std::uint32_t id);
  void forget(std::uint32_t id);
  [[nodiscard]] bool has_state(std::uint32_t id) const {
    return !sparse_ || (places_[id] != kNotYet && places_[id] < kWaits);
  }
  void begin_rank(std::uint32_t id, std::int64_t time);
  Status run_windows();
  void prefetch(const HugeVector<Event>& events, std::size_t at) const;
  void granted(std::uint32_t id);
  void run_host(const Event* first, const Event* last);
  void push(const Event& event);
  [[nodiscard]] std::int64_t begin_of(std::uint32_t id) const;
  [[nodiscard]] std::int64_t limit_of(const RankState& rank) const;
  void happen(const Event& event);
  Result<Report> report();
  std::vector<PathStep> trace_path() const;

  // simulation_rank-inl.h: what a rank does.
  void begin(std::uint32_t id, std::int64_t time);
  void begin_stage(std::uint32_t id, Stage stage, std::int64_t time);
  bool next_stage(std::uint32_t id);
  void give_back(std::uint32_t id);
  static void shift_peers(const Flight& flight, const Part& part);
  void run(std::uint32_t id);
  StrandState* next_strand(RankState* rank);
  std::int64_t next_look(RankState* rank);
  bool take_core(std::uint32_t rank, std::int64_t ready);
  void leave_core(std::uint32_t rank);
  void wake_at(std::uint32_t id, std::int64_t time);
  bool next_part(std::uint32_t id, StrandState* strand);
  const Step* find_step(std::uint32_t id, StrandState* strand);
  bool do_step(std::uint32_t id, StrandState* strand);
  void work(std::uint32_t id, StrandState* strand, const Step& step);
  void count_as_copy(Activity activity, std::int64_t ps);
  void next_step(std::uint32_t id, StrandState* strand);
  void finish(std::uint32_t id);
  void end(std::uint32_t id, std::int64_t end);
  void spend(std::uint32_t id, StrandState* strand, std::int64_t until, Activity activity,
             const Step& step);
  void fail(const Status& status) {
    if (status_.ok()) status_ = status;
  }
  // Fails where it is later than can be told; nobody goes on then.
  void check_time(std::int64_t ps) {
    if (ps <= machine::kLastPs) [[likely]]
      return;
    fail({Code::kUnsupported, "it takes longer than can be told, 26 days"});
    window_end_ = INT64_MIN;
  }
  void count_message(std::int64_t bytes) {
    ++report_.messages;
    if (!__builtin_add_overflow(report_.bytes, bytes, &report_.bytes)) [[likely]]
      return;
    fail({Code::kUnsupported, "its messages have more bytes than can be counted, 8 EiB"});
    window_end_ = INT64_MIN;
  }
  [[nodiscard]] static std::uint32_t index_of(const RankState& rank, const StrandState* strand);
  // Whether something else may go on while a strand waits.
  [[nodiscard]] bool shares_cpu(const RankState& rank) const {
    if constexpr (kFull) {
      if (replay_) return true;
    }
    return rank.more && !rank.more->strands.empty();
  }
  template <typename Body>
  static StrandState* find_strand(RankState* rank, Body body);
  std::int64_t stage(std::uint32_t id, std::int64_t time, std::int64_t bytes, bool staged);

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
  void deliver_here(std::uint32_t id, std::uint32_t to, std::int64_t sent, std::int64_t time,
                    Subject subject, std::int32_t number);
  void multicast(std::uint32_t id, const StrandState& strand, const Step& step, Subject subject);
  std::uint32_t path_node(std::uint32_t path, std::uint32_t from, std::uint32_t to,
                          std::int64_t sent);
  [[nodiscard]] std::uint32_t path_of(std::uint32_t id) const {
    if constexpr (kFull) return state_of(agent_of(id)).path;
    return 0;
  }
  void note_wait(std::uint32_t id, std::int64_t came, std::uint32_t path);
  [[nodiscard]] std::uint32_t peer_of(std::uint32_t id, const StrandState& strand,
                                      const Step& step) const {
    const std::uint32_t named = strand.parts.part.peers[step.peer];
    return kFull ? named : Symmetry::peer(peers_, id, named, ranks_);
  }
  [[nodiscard]] std::uint64_t channel_key(std::uint32_t id, const StrandState& strand,
                                          const Step& step) const {
    const std::uint64_t peer = has_readers(step.channel) ? 0xffffffff : peer_of(id, strand, step);
    return peer << 3 | static_cast<std::uint64_t>(step.channel);
  }

  // simulation_lending-inl.h: messages that are read in their writer's memory.
  void lend(std::uint32_t id, const Step& step);
  [[nodiscard]] std::int64_t read_lent(std::int64_t begin, const StrandState& strand,
                                       const Step& step, std::uint32_t transfer,
                                       std::int64_t* copy_ps);
  void end_lending(const Event& event);
  [[nodiscard]] static bool is_lent(const StrandState& strand, const Step& step) {
    return step.lending == Lending::kAlways ||
           (step.lending == Lending::kIfLanded && strand.landed);
  }

  // simulation_reception-inl.h: who of a node receives multicasts to nodes.
  NodeReception& reception_of(std::uint32_t id);
  [[nodiscard]] const Nodes* sharers_of(std::uint32_t id) const;
  StrandState* strand_waiting(std::uint32_t id, const MessageKey& key);
  bool waits_for(std::uint32_t id, const MessageKey& key) {
    return strand_waiting(id, key) != nullptr;
  }
  void come_to_node(const Event& event);
  void wait_for_node(std::uint32_t id, const StrandState& strand, const MessageKey& key);
  void hand_over(NodeReception* reception, std::uint32_t from, std::int32_t number);
  void take_over(const Event& event);
  void publish(std::uint32_t id, std::int64_t time, Subject subject, std::uint32_t writer,
               std::int32_t number);

  // simulation_aggregate-inl.h: reductions in switches.
  bool aggregate(std::uint32_t id, StrandState* strand, const Step& step);
  bool begin_aggregate(std::uint32_t id);
  bool contribute(std::uint32_t id, StrandState* strand, const Step& step, std::int64_t packet);
  bool await_result(std::uint32_t id, StrandState* strand, const Step& step, std::int64_t packet);
  void take_result(std::uint32_t id, StrandState* strand, const Step& step, const Arrived& arrived);
  void next_packet(std::uint32_t id, StrandState* strand, const Step& step);
  [[nodiscard]] std::uint32_t packet_transfer(std::int64_t operand) {
    return transfers_.index(
        {.bytes = machine_.in_switch.header_bytes + operand, .registered = true},
        OpKind::kAggregate);
  }

  // simulation_replay-inl.h: programs.
  void begin_actor(std::uint32_t rank, std::int64_t time);
  void run_actor(std::uint32_t rank);
  bool next_member(std::uint32_t agent, std::uint32_t* member, StrandState** strand);
  std::vector<std::uint32_t>& members_of(std::uint32_t agent);
  bool stretch(std::uint32_t rank);
  void next_action(std::uint32_t rank);
  void account(std::uint32_t rank, std::int64_t now);
  void end_actor(std::uint32_t rank);
  bool start(std::uint32_t rank, const program::Step& step);
  Flight* take_off(std::uint32_t rank, const program::Step& step, program::TeamTable::Place place);
  Result<ReplayState::Plan*> plan_of(const program::Call& call, std::uint32_t team);
  Status match(const Flight& flight, std::uint32_t rank, const program::Step& step) const;
  void end_member(std::uint32_t id, std::int64_t end);
  void land(Flight* flight);
  void stuck();
  [[nodiscard]] std::vector<PathStep> path_of_program() const;
  [[nodiscard]] std::uint32_t& clock_path_of(std::uint32_t rank);
  [[nodiscard]] std::int64_t& clock_of(std::uint32_t rank);

  // simulation_servlet-inl.h: programs whose nodes have servlets.
  void make_servlets();
  Status check_servlets() const;
  void hand_over(std::uint32_t id);
  void pick_up(std::uint32_t id, std::int64_t time);
  void run_servlet(std::uint32_t servlet);
  [[nodiscard]] std::int64_t tell_owner(std::uint32_t id, std::int64_t end);

  const machine::Machine& machine_;
  const Options& options_;
  const Nodes* nodes_;              // null: one
  const Nodes* domains_ = nullptr;  // of a single call; null: they do not matter
  Cores cores_;
  bool single_;   // one rank per node, and cores for all
  bool careful_;  // ranks share something of their nodes
  bool sparse_;   // ranks have states as long as they need them
  std::uint32_t ranks_;
  TransferTable transfers_;
  std::uint32_t empty_;  // the transfer of nothing
  Compiler compiler_;
  std::optional<Emission> emission_;  // of a single call,
  Flight only_;                       // this one
  Network network_;
  Inboxes inboxes_;
  Symmetry::Peers peers_ = Symmetry::Peers::kOwn;
  HugeArray<RankState> states_;  // by rank; of a sparse simulation at these places:
  // or kWaits and its class, if it begins with a wait and nothing has happened to it yet.
  static constexpr std::uint32_t kNotYet = 0, kWaits = 1U << 31, kEnded = UINT32_MAX;
  HugeArray<std::uint32_t> places_;
  std::vector<std::uint32_t> free_places_;
  static constexpr std::size_t kMembers = 1024;
  std::vector<std::unique_ptr<RankState[]>> members_;
  std::unique_ptr<ReplayState> replay_;  // null: a single call
  Calendar<Event> calendar_;
  // Of the host whose events are happening: what is still to come in this window.
  const Event* next_event_ = nullptr;
  const Event* last_event_ = nullptr;
  std::priority_queue<Event, std::vector<Event>, Later> soon_;
  std::int64_t delivers_until_ = -1;  // the last that can be seen in it, -1: none
  std::int32_t node_ = 0;
  std::int64_t window_end_ = 0;
  std::int64_t now_ = 0;  // the time of the event that is happening
  std::vector<PathNode> path_;
  std::vector<StrandParts> beginning_;
  std::uint32_t beginning_class_ = 0;  // of the rank that begins; 0: not known
  std::uint32_t events_ = 0;
  std::uint32_t ended_ = 0;
  std::int64_t first_begin_ = INT64_MAX, last_end_ = 0;
  std::uint32_t last_path_ = 0, last_rank_ = 0;  // of the rank that ends last
  Report report_;
  Status status_;
};

}  // namespace carillon::sim
