// SPDX-License-Identifier: Apache-2.0
//
// The engine of one context: joins the node, owns this rank's share of its memory, and moves
// everything in flight on. Runs and teams belong to their callers; the engine knows the active
// ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/config.h"
#include "base/offset_allocator.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "carillon/carillon.h"
#include "engine/aggregation.h"
#include "engine/copy_choice.h"
#include "engine/list_terms.h"
#include "engine/message_ways.h"
#include "engine/multicast.h"
#include "engine/posted_runs.h"
#include "engine/run.h"
#include "engine/servlet.h"
#include "engine/windows.h"
#include "schedule/problem.h"
#include "team/lifeline.h"
#include "transport/net/network.h"
#include "transport/shm/control.h"
#include "transport/shm/doorbell.h"
#include "transport/shm/pool.h"
#include "transport/shm/segment.h"

namespace carillon {

class Team;
struct NodePlace;

/// What runs of later stages are made from; implemented by the layer that knows algorithms.
class StageSource {
 public:
  virtual ~StageSource() = default;
  /// The plan of a run that has none and is about to begin (Run::await_plan), or, if `run` has
  /// just finished one stage, of the next.
  virtual Result<std::shared_ptr<const Plan>> plan(Run& run) = 0;
};

class Engine {
 public:
  /// Collective over config.oob; blocks.
  static Result<std::unique_ptr<Engine>> create(const crl_context_config_t& config,
                                                const Config& settings);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] shm::Segment& segment() const { return *segment_; }
  [[nodiscard]] shm::Pool& pool() { return *pool_; }
  [[nodiscard]] int node_rank() const { return node_rank_; }
  /// The NUMA domain of the node that this process runs in; -1: not known.
  [[nodiscard]] int domain() const { return domain_; }
  /// Processes of the node run in several; the same at all of them.
  [[nodiscard]] bool has_domains() const { return has_domains_; }
  [[nodiscard]] const Config& settings() const { return settings_; }
  [[nodiscard]] bool in_heap(const void* memory, std::size_t bytes) const {
    return segment_->in_heap(node_rank_, memory, bytes);
  }
  /// Where the node's other processes can read these bytes, from the segment's start; nullopt:
  /// they cannot.
  [[nodiscard]] std::optional<std::uint64_t> shared_offset(const std::byte* memory,
                                                           std::size_t bytes) const {
    if (memory == nullptr) return std::nullopt;
    if (in_heap(memory, bytes)) return static_cast<std::uint64_t>(memory - segment_->base());
    const bool own = memory >= own_heap_.base && memory + bytes <= own_heap_.base + own_heap_.bytes;
    if (!own || !segment_->heap_is_mapped(node_rank_)) return windows_.reference_to(memory, bytes);
    return segment_->program_heap(node_rank_) + static_cast<std::uint64_t>(memory - own_heap_.base);
  }
  /// And where this one reads them, as told by another. Null: they are not there, or not any more.
  [[nodiscard]] const std::byte* at_shared_offset(std::uint64_t offset, std::uint64_t bytes) const {
    if (Windows::is_reference(offset)) [[unlikely]]
      return windows_.find(offset, bytes);
    return segment_->holds(offset, bytes) ? segment_->base() + offset : nullptr;
  }
  /// What messages within the node came to.
  [[nodiscard]] crl_traffic_t& traffic() { return traffic_; }
  /// The node has more ranks than cores.
  [[nodiscard]] bool crowded() const { return oversubscribed_; }
  /// May a blocking call give its core to others a few times before it looks at more than its own
  /// messages? Nobody waits meanwhile for a lock of its, or for what it does for the network.
  [[nodiscard]] bool yields_at_once() const { return oversubscribed_ && !locks_ && !network_; }
  /// The processes of the node could be joined; if not, no team can be served.
  [[nodiscard]] bool joined() const { return segment_ != nullptr; }
  /// The processes that started with this one: which it is, and the node of each.
  [[nodiscard]] int process() const { return process_; }
  [[nodiscard]] std::uint64_t world() const { return world_; }
  [[nodiscard]] std::span<const std::int32_t> node_of() const { return node_of_; }
  /// Null: all processes are on one node, or there is no network (network_status()).
  [[nodiscard]] net::Network* network() const { return network_.get(); }
  [[nodiscard]] const Status& network_status() const { return network_status_; }
  /// Whether a team has said that the network failed; from now on one has.
  bool network_failure_said() { return std::exchange(network_failure_said_, true); }
  /// Messages within the node are read in the writer's memory if they are at least as long;
  /// `one_way`: those of ranks that only write, or only take.
  [[nodiscard]] std::int64_t lend_from_bytes(bool one_way) const {
    return one_way ? lend_one_way_from_bytes_ : lend_from_bytes_;
  }
  [[nodiscard]] MessageWays& message_ways() { return message_ways_; }
  [[nodiscard]] CopyChoice& copy_choice() { return copy_choice_; }
  /// So long it took this process to take so a message of the node that came this way; its senders
  /// are told. False: that says nothing yet.
  bool learn_taking(shm::Taken taken, shm::Way way, MessageWays::Clock::duration took,
                    std::int64_t bytes);
  /// What this process multicasts with, on teams that all want it.
  [[nodiscard]] const MulticastWish& multicast_wish() const { return multicast_; }
  /// It has not worked: no more teams try. `tells`: whether this process says so, if it was asked
  /// for.
  void stop_multicasting(const Status& why, bool tells);
  /// The switch that teams join which all want it; none after it has failed.
  [[nodiscard]] const SwitchWish& switch_wish() const { return switch_; }
  void stop_aggregating(const Status& why, bool tells);
  /// Whether a team has said that some of its ranks name no switch; from now on one has.
  bool nameless_switch_said() { return std::exchange(nameless_switch_said_, true); }
  void start_aggregating(const TeamAggregation& group);
  /// A team has these groups, which need progress.
  void start_multicasting(const TeamMulticast& groups);
  /// Messages between nodes are got from where they stand if they are at least as long.
  [[nodiscard]] std::int64_t fetch_from_bytes() const { return fetch_from_bytes_; }
  /// They cannot be: the caller's memory cannot be registered.
  void stop_fetching(const Status& why);
  /// Messages that are sent and received between nodes are placed if they are at least as long.
  [[nodiscard]] std::int64_t place_from_bytes() const {
    constexpr std::int64_t kLeast = shm::kInlineBytes + 1;
    return settings_.place_bytes == 0 ? INT64_MAX : std::max(settings_.place_bytes, kLeast);
  }
  [[nodiscard]] const ListTerms& list_terms() const { return list_terms_; }
  /// A list goes as it is if its runs of bytes are at least so long on average.
  [[nodiscard]] std::int64_t gather_from_bytes() const { return gather_from_bytes_; }
  /// Memory of the caller's is registered for the time of a call if so much of it is put at once.
  [[nodiscard]] std::int64_t register_from_bytes() const { return register_from_bytes_; }
  /// None is any more: memory cannot be registered.
  void stop_gathering(const Status& why);
  /// The block from crl_alloc in which the bytes lie, as the network knows it until it is freed.
  Result<const wire::Registration*> heap_registration(std::span<const std::byte> bytes);
  /// Changes when a block that the network knew is freed.
  [[nodiscard]] std::uint64_t heap_changes() const { return heap_changes_; }
  /// What is known of a process of another node; it is watched from now on. `reason` says more.
  Lifeline::State look_at(int process, Status* reason);
  /// It has ended, and what it had sent may still be coming.
  bool may_still_come(int process);
  /// May the process, of another node, live, as far as is known now? Who never called has not said.
  bool lives(int process);
  /// Where the time of the collectives goes that begin from now on; forgets what was measured.
  void start_breakdown() {
    breakdown_ = {};
    measured_ = true;
  }
  /// What was measured stays.
  const Breakdown& end_breakdown() {
    measured_ = false;
    return breakdown_;
  }
  /// Null: it is not measured.
  [[nodiscard]] Breakdown* breakdown() { return measured_ ? &breakdown_ : nullptr; }
  void set_stage_source(StageSource* source) { stages_ = source; }

  struct ToPost {};
  static constexpr ToPost kToPost = {};

  /// Serializes the calls below when the context is threaded, or the servlet is at work; else does
  /// nothing. Of the program's threads.
  class Lock {
   public:
    explicit Lock(Engine& engine) : engine_(engine), held_(engine.locks_) { take(false); }
    /// Not held where the servlet is just moving things on.
    Lock(Engine& engine, std::try_to_lock_t /*how*/) : engine_(engine), held_(engine.locks_) {
      take(engine_.servlet_ != nullptr);
    }
    /// So, where runs can be posted instead.
    Lock(Engine& engine, ToPost /*how*/) : engine_(engine), held_(engine.locks_) {
      take(engine_.servlet_ != nullptr && !engine_.threaded_);
    }
    [[nodiscard]] bool busy() const { return busy_; }
    ~Lock() { release(); }
    /// Before its end.
    void release() {
      if (!std::exchange(held_, false)) return;
      if (!engine_.threaded_ && engine_.active_.empty()) engine_.locks_ = false;
      engine_.mutex_.unlock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    /// From here on others are locked out, and until nothing is in flight any more.
    void share();

   private:
    void take(bool tries) {
      if (!held_) return;
      if (!tries) {
        engine_.mutex_.lock();
      } else if (!engine_.mutex_.try_lock()) {
        held_ = false;
        busy_ = true;
        return;
      }
      engine_.start_posted();
    }

    Engine& engine_;
    bool held_;
    bool busy_ = false;
  };

  // All of these with the Lock held.
  /// Before a team is made: add_team and retire_team need no memory.
  void make_room_for_team();
  void add_team(Team& team);
  /// The team is no longer used by the caller; destroyed when no peer needs its area any more.
  void retire_team(std::unique_ptr<Team> team);
  /// Begins the run, or lets it wait for its turn on its team.
  void start(Run& run);
  enum class Mover { kProgram, kServlet };
  void progress(int polls = 0, Mover mover = Mover::kProgram);
  /// Moves on, for a while, what a run waits for. True: it has ended. Mostly the other ranks come
  /// soon, and this costs less than the beginning of a wait.
  bool look(Run& run);
  /// For callers that poll: now and then looks for dead peers, too.
  void progress_and_watch(Mover mover = Mover::kProgram);
  [[nodiscard]] bool has_servlet() const { return servlet_ != nullptr; }
  /// If so: it moves all non-blocking calls on from their beginning, not some (api/served.h).
  [[nodiscard]] bool serves_all() const { return settings_.servlet == "on"; }
  /// What has been started is the servlet's. Releases the lock.
  void hand_over(Lock& lock);
  /// Without the Lock, which the servlet had a moment ago: starts the run, whose plan is found when
  /// it begins, as soon as somebody has it. False: that cannot be.
  bool post(Run& run);

  /// Fails the team unless it has failed: a caller cannot go on. Its runs are their callers' again.
  void fail(Team& team, const Status& why);

  /// No more bytes of the window are told of. Refused while a collective uses it.
  Status close_window(const SharedWindow& window);
  /// No process tells of its bytes any more.
  void forget_window(const SharedWindow& window) { windows_.remove(window); }

  // Blocking; without the Lock.
  /// Memory that the members, all processes of the node, have mapped: each says where it has the
  /// part of each. Collective over oob. Code::kUnsupported, on all: they are not these.
  Result<SharedWindow> share_window(const crl_oob_t& oob, std::span<const WindowPart> parts);
  /// Starts the run and returns when it has ended.
  void run_to_end(Run& run);
  /// Returns when a started run has ended.
  void wait(Run& run);
  /// Returns when the team is ready or has failed.
  void wait(Team& team);
  /// The team, which is ready, joins its multicast groups (Team::begin_joining): returns when it
  /// has, or cannot, or has failed. `oob` is used with the Lock held.
  void join_multicast(Team& team, const crl_oob_t& oob);

  /// The rank's own, for teams.
  shm::ControlMemory& control_memory() { return *control_; }
  /// Frees what the teams had that are retired and quiet.
  void reap_teams();
  std::uint64_t new_generation() { return generation_ = generation_ % (shm::kGenerations - 1) + 1; }
  void* allocate_heap(std::uint64_t bytes);
  /// Refused while a collective uses the block.
  Status free_heap(void* memory);

 private:
  [[nodiscard]] Status refuse_if_used(std::span<const std::byte> memory) const;
  template <typename T>
  Result<std::vector<T>> tell_all(const crl_oob_t& oob, const T& mine);
  friend class Waiter;
  friend class Servlet;
  // A thread of the program waits: meanwhile it does the servlet's work.
  class Waiting {
   public:
    explicit Waiting(Engine& engine);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    Engine& engine_;
    bool counts_ = false;
  };
  explicit Engine(const Config& settings) : settings_(settings) {
    // A blocking call has begun when it joins these, and may not fail for want of memory any more.
    active_.reserve(16);
  }
  void set_up_memory();
  void set_up_servlet(const NodePlace& place);
  void end_servlet();
  [[nodiscard]] bool servlet_has_work() const;
  /// With the mutex held, before anything else is done: in the order in which they were posted.
  void start_posted() {
    if (!posted_.empty()) [[unlikely]]
      start_all_posted();
  }
  void start_all_posted();
  void set_up_gathering();
  Status set_up_network(const crl_oob_t& oob, const SwitchWish& in_switch);
  Status set_up_lifeline(const crl_oob_t& oob);
  void progress_network();
  void progress_multicasts();
  void wait_for_datagrams(int descriptor);
  [[nodiscard]] bool datagrams_arrived() const;
  template <typename Body>
  void each_multicast(Body body);
  template <typename Body>
  void each_aggregation(Body body);
  [[nodiscard]] bool ready_to_wait();
  /// Until when no multicast needs progress, but `most_us` at most.
  [[nodiscard]] int wait_us(int most_us);
  void progress_lifeline();
  void leave_network();
  void give_up_on_ended();
  bool owes_multicasts();
  void begin_deferred();
  /// Whoever sees that a run has ended may at once use it again.
  void forget_ended();
  bool begin(Run& run);
  bool plan(Run& run);
  bool begin_next_stage(Run& run);
  void fail(Run& run, const Status& why);
  /// True if the run has ended.
  bool move_on(Run& run, int polls);
  template <typename Done>
  void wait_until(Done done);
  /// An error if a process of this node has died, so that `what` is perhaps never made.
  [[nodiscard]] Status find_death_on_node(const char* what) const;
  /// An error if a process has died that may be a member of any team.
  Status find_death();
  /// Fails what can never end: a process has died, or there is no room for messages any more.
  void check_peers(Mover mover = Mover::kProgram);
  struct RankLook {  // of a rank of the node, as it tells them (shm::RankState)
    std::uint64_t looks = 0, moves = 0;
  };
  struct Holder {  // of room in the pool
    Team* team = nullptr;
    std::uint64_t collective = 0;
  };
  [[nodiscard]] bool moves_all(Mover mover) const;
  [[nodiscard]] std::uint64_t position() const;  ///< another value when any run has moved on
  void note_look();
  [[nodiscard]] std::vector<RankLook> rank_looks() const;
  std::vector<Holder> holders_of_room(const std::vector<Team*>& wanting);
  bool waits_in_vain(const std::vector<Holder>& holders);
  void tell_whom(const std::vector<Holder>& holders);
  [[nodiscard]] bool nobody_hopes() const;
  void check_room(Mover mover);

  Config settings_;
  std::shared_ptr<shm::Segment> segment_;
  std::unique_ptr<net::Network> network_;  // outlives all teams
  Status network_status_;
  bool network_failure_said_ = false;
  std::int64_t lend_from_bytes_ = INT64_MAX, lend_one_way_from_bytes_ = INT64_MAX;
  MessageWays message_ways_;
  CopyChoice copy_choice_;
  MulticastWish multicast_;
  SwitchWish switch_;
  bool nameless_switch_said_ = false;
  bool multicasts_ = false;
  UniqueFd multicast_events_;       // readable when a datagram has come for any group
  bool unheard_datagrams_ = false;  // but for some
  std::int64_t fetch_from_bytes_ = INT64_MAX;
  ListTerms list_terms_;
  std::int64_t gather_from_bytes_ = 1;
  std::int64_t register_from_bytes_ = INT64_MAX;
  std::unique_ptr<shm::Bell> bell_;     // null: the network gives nothing to sleep on
  std::unique_ptr<Lifeline> lifeline_;  // null: one node
  std::vector<LifelineAddress> lifelines_;
  std::uint32_t network_rounds_ = 0;
  int node_rank_ = 0;
  int domain_ = -1;
  bool has_domains_ = false;
  int process_ = 0;
  std::uint64_t world_ = 0;
  std::vector<std::int32_t> node_of_;
  bool oversubscribed_ = false;
  bool threaded_ = false;
  std::mutex mutex_;
  bool locks_ = false;  // it must be held: changed by the program's threads, with it held
  int waiting_ = 0;     // threads of the program that wait while the servlet is at work
  std::unique_ptr<Servlet> servlet_;  // null: there is none; changed with the mutex held
  PostedRuns posted_;                 // by the program's only thread
  void (*idle_)(void*) = nullptr;
  void* idle_arg_ = nullptr;
  StageSource* stages_ = nullptr;
  Breakdown breakdown_;
  bool measured_ = false;
  std::unique_ptr<shm::Pool> pool_;
  std::optional<shm::ControlMemory> control_;
  std::unique_ptr<OffsetAllocator> heap_;
  shm::ProcessHeap own_heap_;
  crl_traffic_t traffic_{};
  struct HeapBlock {
    std::uint64_t bytes = 0;
    std::unique_ptr<wire::Registration> registration;  // null: the network has not needed it
  };
  std::map<std::uint64_t, HeapBlock> heap_blocks_;  // by offset: allocated, not yet freed
  std::uint64_t heap_changes_ = 0;
  Windows windows_;
  std::uint64_t generation_ = 0;
  std::vector<Team*> teams_;     // in use
  std::vector<Team*> agreeing_;  // of these, the ones not ready yet
  std::vector<std::unique_ptr<Team>> retired_;
  std::vector<Run*> active_;    // begun or deferred, not yet ended
  std::uint64_t turnover_ = 0;  // so many have begun or ended
  int deferred_ = 0;            // of these, the deferred ones
  std::int64_t next_watch_ms_ = 0;
  std::uint64_t position_ = 0;        // of all that is active, when this rank last looked
  std::vector<RankLook> room_looks_;  // of the node's ranks, none of which has moved on since
  std::int64_t room_since_ms_ = 0;    // then
};

}  // namespace carillon
