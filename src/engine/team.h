// SPDX-License-Identifier: Apache-2.0
//
// A team at this rank: how it comes to be (a non-blocking agreement), its channels, and the
// collectives in flight on it in the order they were started.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "engine/aggregation.h"
#include "engine/multicast.h"
#include "engine/run.h"
#include "schedule/problem.h"
#include "team/bootstrap.h"
#include "transport/net/links.h"
#include "transport/shm/endpoint.h"
#include "transport/shm/pool.h"

namespace carillon {

class Engine;

class Team {
 public:
  enum class State { kAgreeing, kReady, kFailed };

  /// Starts the agreement.
  Team(Engine& engine, const crl_oob_t& oob);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] int rank() const { return oob_.rank; }
  [[nodiscard]] int size() const { return oob_.size; }
  /// Any thread; kReady and kFailed are final but for kReady to kFailed.
  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }
  /// Why the team failed, if it did: at its making (equal on all members) or later.
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] Engine& engine() const { return engine_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// Whether all members have the same CARILLON_ALGORITHM.
  [[nodiscard]] bool same_settings() const { return same_settings_; }
  [[nodiscard]] shm::Endpoint& endpoint() { return *endpoint_; }
  /// Some members are on other nodes.
  [[nodiscard]] bool spans_nodes() const { return links_ != nullptr; }

  /// Moves the agreement on.
  void progress_agreement();
  /// And its multicasts; what others lack of this rank's comes again only here.
  /// Of multicast(), which there is: as its own progress().
  void progress_multicast(bool arrived);
  /// Null: it has none, or none yet: what is still being set up has no groups.
  [[nodiscard]] TeamMulticast* multicast() {
    return state() == State::kReady && !joining_ ? multicast_.get() : nullptr;
  }
  /// Tells its groups which of the members that they wait for have ended.
  void note_who_has_left(TeamMulticast& groups);
  [[nodiscard]] Status about_groups(const Status& status,
                                    std::optional<std::uint64_t> collective) const;
  /// Moves its aggregates on, and those of others that need this rank.
  void progress_aggregation();
  /// Null: it has no switch, or none yet.
  [[nodiscard]] TeamAggregation* aggregation() {
    return state() == State::kReady ? aggregation_.get() : nullptr;
  }
  /// It may have groups, which its members join only when enough calls have wished for them.
  [[nodiscard]] bool may_join() const { return may_join_; }
  /// A call of so many bytes would be multicast. True: it was enough. Equal on all members if all
  /// tell of the same calls.
  bool note_wish(std::int64_t bytes);
  /// The members, each in the same call, join by exchanges of `oob`, which other collectives of the
  /// team may carry; to be followed by progress_joining() until it is false, though the team fail.
  void begin_joining(const crl_oob_t& oob);
  bool progress_joining();
  /// Limits::multicast_pays; the same on all members.
  void set_multicast_pays(bool pays) { limits_.multicast_pays = pays; }
  /// It has no groups any more. Of all members, when each knows that all have what was multicast.
  void leave_multicast();
  /// The group that messages of this flow are in.
  GroupStreams& streams(Flow flow) { return multicast_->streams(group_of(flow)); }
  /// What this node receives of multicasts to nodes.
  Reception& reception() { return multicast_->reception(); }
  /// Wakes who sleeps for what has just come for the node.
  void tell_reception();

  /// Runs that can begin now; a run started before the team is ready, or behind one with further
  /// stages, waits its turn.
  [[nodiscard]] bool may_begin() const {
    return state() == State::kReady && waiting_.empty() && !staged_;
  }
  void begin(Run& run);
  /// Begins it and, if it can be done at once, completes it; true: it is done. Only a brief run,
  /// and if nothing is in flight.
  bool run_briefly(Run& run, int polls);
  /// Has there been a run? Then one can be noted without memory that might not be had.
  [[nodiscard]] bool has_room_for_one() const { return in_flight_.capacity() > 0; }
  void defer(Run& run) {
    waiting_.push_back(&run);
    run.set_state(Run::State::kDeferred);
  }
  /// The deferred run that may begin now, or null.
  Run* next_deferred();
  /// A run of this team has finished.
  void complete(Run& run);
  /// Its plan is done: what it had from other nodes counts for what they are to hear of.
  void note_received(Run& run) {
    if (links_) run.note_received(*links_);
  }
  /// Null: nothing is in flight, or the team is not ready.
  [[nodiscard]] const Run* oldest_run() const {
    return state() == State::kReady && !in_flight_.empty() ? in_flight_.front() : nullptr;
  }
  [[nodiscard]] bool has_endpoint() const { return endpoint_.has_value(); }
  /// Has each member, as far as is known, completed this collective, or said that it waits in the
  /// next one that it has to complete?
  [[nodiscard]] bool all_are_in(std::uint64_t collective);
  /// Of the members that are on this node.
  [[nodiscard]] std::vector<int> node_ranks();
  void fail_for_want_of_room();
  void set_staged(bool staged) { staged_ = staged; }
  [[nodiscard]] bool at_work() const { return !in_flight_.empty(); }
  /// Is there one collective in flight, so that `done` covers all that is complete?
  [[nodiscard]] bool only_in_flight() const { return in_flight_.size() == 1; }
  /// Is this the oldest collective in flight?
  [[nodiscard]] bool oldest(std::uint64_t collective) const {
    return endpoint_->done() + 1 == collective;
  }
  /// Fails the team if what is in flight cannot end: a member died, left or gave up before it
  /// completed it, is in another call, or has completed it without what this rank waits for.
  void check_peers();
  /// What the team is called where people are told of it; the caller's communicator, say.
  void set_name(std::string name) { name_ = std::move(name); }
  /// Ends everything on the team with an error, for good. What it joins its multicast groups by
  /// stays until progress_joining().
  void fail(Status why);
  /// What the run of that collective fails with if the member gave the team up.
  [[nodiscard]] Status given_up_by(int rank, std::uint64_t collective);
  [[nodiscard]] Status unreachable(int rank, std::uint64_t collective, const Status& why) const;
  [[nodiscard]] Status damaged(int rank, const Run& run, const std::string& what) const;
  /// Is the member, on another node, alive and connected as far as is known?
  [[nodiscard]] bool reaches(int rank);

  /// The caller has destroyed it, ready or not.
  void abandon();
  /// For the end: true once no member will touch this rank's area any more.
  bool quiet();

 private:
  void note_done();
  struct Hello;  // what members tell each other
  void tell_why(const Status& why) const;
  /// For as many members as may be on this node.
  [[nodiscard]] shm::AreaLayout area_layout() const;
  [[nodiscard]] std::uint64_t reception_bytes() const {
    return Reception::bytes(static_cast<std::size_t>(size()));
  }
  void move_agreement_on();
  void agree();
  void refuse(Status why);
  Status check_hellos(std::span<const Hello> hellos) const;
  [[nodiscard]] bool is_possible(const Hello& hello) const;
  void agree_limits(std::span<const Hello> hellos);
  static std::shared_ptr<const Nodes> agree_domains(std::span<const Hello> hellos,
                                                    const Nodes& nodes);
  void connect(std::span<const Hello> hellos);
  MulticastOffer offer_multicast();
  bool begin_multicast(const crl_oob_t& oob, std::span<const MulticastOffer> offers);
  [[nodiscard]] ReceptionPlace reception_place(std::span<const MulticastOffer> offers) const;
  bool set_up_multicast();
  bool move_joining_on();
  [[nodiscard]] bool all_want_switch(std::span<const SwitchWish::State> states) const;
  void begin_aggregation();
  bool set_up_aggregation();
  void become_ready();
  void check_member(int rank, const Run& oldest);
  void fail_ended(int rank, std::uint64_t collective, bool died, const Status& reason);
  void fail_mismatch(int rank, std::uint64_t collective);
  void take_memory_back(const std::vector<Run*>& runs);
  [[nodiscard]] std::vector<int> under_way(const std::vector<Run*>& runs) const;
  bool end_what_is_under_way(const std::vector<Run*>& runs);
  [[nodiscard]] bool may_be_sent_to();
  void tell_who_is_missing(const Run& oldest);

  Engine& engine_;
  crl_oob_t oob_;
  std::atomic<State> state_ = State::kAgreeing;  // partner of each store: state()
  Status status_;
  Limits limits_;
  bool same_settings_ = true;
  bool staged_ = false;
  std::optional<shm::AreaPlace> area_;
  std::optional<std::uint64_t> reception_;  // for all of a leader's node
  std::unique_ptr<Gather<Hello>> gather_;   // until it is done: the caller may write into it
  std::optional<std::uint32_t> pair_ids_;
  std::optional<shm::Endpoint> endpoint_;
  std::unique_ptr<net::Links> links_;             // null: all members are on this node
  std::unique_ptr<TeamMulticast> multicast_;      // null: there is none
  bool wants_aggregation_ = false;                // all members do
  std::unique_ptr<TeamAggregation> aggregation_;  // null: there is none
  struct Joining {
    crl_oob_t oob = {};
    Gather<MulticastOffer> offers;
  };
  bool may_join_ = false;
  std::int64_t wished_bytes_ = 0;
  std::unique_ptr<Joining> joining_;  // multicast_ is being set up while the team is in use
  std::uint64_t started_ = 0;
  std::uint64_t in_vain_ = 0;       // the collective that was seen to wait in vain,
  std::uint64_t seen_in_vain_ = 0;  // and when it was looked at before
  std::string name_;
  struct {  // the oldest collective in flight, as the watchdog sees it
    std::uint64_t collective = 0;
    std::int64_t since_ms = 0;
    std::int64_t told_ms = 0;
  } watched_;
  bool closed_ = false;  // nobody will write to its pairs any more
  /// From the oldest on, which is collective done + 1; null: complete, its run may serve another
  /// call by now.
  std::vector<Run*> in_flight_;
  std::vector<Run*> waiting_;
};

}  // namespace carillon
