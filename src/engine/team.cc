// SPDX-License-Identifier: Apache-2.0
#include "engine/team.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/message_room.h"
#include "engine/engine.h"
#include "engine/run_brief-inl.h"
#include "engine/wake.h"

namespace carillon {

// What every member tells every other. Plain data: it travels as bytes.
struct Team::Hello {
  std::uint64_t segment_id = 0;  // 0: this member could not join its node
  std::uint64_t world = 0;
  shm::AreaPlace area;
  std::uint64_t generation = 0;
  std::int64_t slot_bytes = 0;
  std::uint64_t settings_hash = 0;
  std::int64_t cross_fs = 0;  // DomainCosts
  ListTerms lists;
  std::uint16_t crowded = 0;
  std::uint16_t reproducible = 0;
  std::uint32_t sockets = 0;
  std::int32_t node_rank = 0;
  std::int32_t domain = -1;  // of its node; -1: not known
  std::int32_t process = 0;
  std::uint32_t pair_ids = 0;
  SwitchWish::State in_switch = SwitchWish::State::kNone;
  MulticastOffer multicast;
};

Team::Team(Engine& engine, const crl_oob_t& oob)
    : engine_(engine), oob_(oob), gather_(std::make_unique<Gather<Hello>>()) {
  Hello mine{.world = engine.world(), .process = engine.process()};
  if (engine.joined()) {
    engine.reap_teams();
    area_ = engine.control_memory().allocate_area(area_layout());
    if (area_) {
      mine.segment_id = engine.segment().id();
      mine.area = *area_;
      mine.generation = engine.new_generation();
      shm::Endpoint::open_area(engine.segment(), area_->area, mine.generation);
    }
    mine.node_rank = engine.node_rank();
    mine.domain = engine.domain();
    mine.cross_fs = engine.settings().cross_ps * 1000;
  }
  mine.slot_bytes = engine.settings().slot_bytes;
  if (engine.network() != nullptr && size() > 1) {
    pair_ids_ = engine.network()->take_ids(size(), mine.generation);
    mine.pair_ids = pair_ids_.value_or(0);
    if (!pair_ids_) mine.segment_id = 0;
  }
  mine.multicast = offer_multicast();
  mine.in_switch = engine.switch_wish().state;
  mine.crowded = engine.crowded() ? 1 : 0;
  if (engine.network() != nullptr) {
    mine.sockets = engine.network()->wire().capabilities().sockets ? 1 : 0;
  }
  mine.reproducible = engine.settings().reproducible != 0 ? 1 : 0;
  mine.lists = engine.list_terms();
  const Config& settings = engine.settings();
  mine.settings_hash = std::hash<std::string>()(settings.algorithm + '\n' + settings.surveys);
  if (Status status = gather_->post(oob, mine); !status.ok()) {
    gather_.reset();
    fail(std::move(status));
  }
}

Team::~Team() {
  (void)gather_.release();  // not done: left alone for ever
  if (state() == State::kAgreeing && multicast_) multicast_.release()->abandon();
  if (state() == State::kAgreeing && aggregation_) aggregation_.release()->abandon();
  if (endpoint_ && engine_.joined()) engine_.pool().forget(&*endpoint_);
  if (area_) engine_.control_memory().release_area(*area_, area_layout());
  if (reception_) engine_.control_memory().release(*reception_, reception_bytes());
  closed_ = closed_ && (!links_ || links_->unbroken());
  links_.reset();
  // Members that have not seen the team fail may still name its pairs.
  if (pair_ids_ && (!endpoint_ || closed_)) engine_.network()->return_ids(*pair_ids_);
}

shm::AreaLayout Team::area_layout() const {
  return {.size = static_cast<std::size_t>(std::min(size(), engine_.segment().ranks())),
          .has_domains = engine_.has_domains()};
}

void Team::progress_agreement() {
  if (state() != State::kAgreeing) return;
  try {
    move_agreement_on();
  } catch (const std::bad_alloc&) {
    if (state() == State::kAgreeing) fail(Status(Code::kNoMemory, "out of memory for a team"));
  }
}

void Team::move_agreement_on() {
  if (aggregation_) {
    if (set_up_aggregation()) become_ready();
    return;
  }
  if (multicast_) {
    if (set_up_multicast()) begin_aggregation();
    return;
  }
  const Code code = gather_->test();
  if (code == Code::kInProgress) return;
  if (code == Code::kOk) return agree();
  fail(Status(code, "a team of " + std::to_string(size()) +
                        " ranks is not made: " + std::string(gather_->failure(code).message())));
}

// Every member sees the same values here, if they are right, so every member comes to the same end.
void Team::agree() {
  const auto gather = std::move(gather_);
  const auto hellos = gather->all();
  if (Status status = check_hellos(hellos); !status.ok()) {
    // What was damaged on the way was so for this member: others may write to its area already.
    if (status.code() == Code::kInvalidArgument) return fail(std::move(status));
    return refuse(std::move(status));
  }
  agree_limits(hellos);
  if (limits_.nodes && engine_.network() == nullptr) {
    refuse(Status(Code::kUnsupported, "the team's members are on " +
                                          std::to_string(limits_.nodes->count()) + " nodes, and " +
                                          std::string(engine_.network_status().message())));
    return;
  }
  connect(hellos);
  std::vector<MulticastOffer> offers;
  std::vector<SwitchWish::State> switches;
  for (const Hello& hello : hellos) {
    offers.push_back(hello.multicast);
    switches.push_back(hello.in_switch);
  }
  wants_aggregation_ = links_ && all_want_switch(switches);
  if (!begin_multicast(oob_, offers)) begin_aggregation();
}

// As all members do, at which nobody comes to write to areas.
void Team::refuse(Status why) {
  if (area_)
    engine_.control_memory().release_area(*std::exchange(area_, std::nullopt), area_layout());
  if (reception_) {
    engine_.control_memory().release(*std::exchange(reception_, std::nullopt), reception_bytes());
  }
  fail(std::move(why));
}

void Team::become_ready() {
  state_.store(State::kReady, std::memory_order_release);
  if (links_ && !engine_.network_status().ok()) fail(engine_.network_status());
}

Status Team::check_hellos(std::span<const Hello> hellos) const {
  for (const Hello& hello : hellos) {
    if (hello.segment_id == 0) {
      return {Code::kUnsupported,
              "a member of the team could not join its node, or has no room for one more team"};
    }
    if (hello.world != hellos.front().world) {
      return {Code::kUnsupported, "the team's members were not started together"};
    }
  }
  const auto wrong =
      std::ranges::find_if(hellos, [&](const Hello& hello) { return !is_possible(hello); });
  if (wrong != hellos.end()) {
    return {Code::kInvalidArgument, "the caller's bootstrap allgather gave of rank " +
                                        std::to_string(wrong - hellos.begin()) + " of a team of " +
                                        std::to_string(size()) + " what that cannot have given"};
  }
  return {};
}

// Of a member of this job. Where one on this node says that others are to write must be memory of
// its own.
bool Team::is_possible(const Hello& hello) const {
  const std::span<const std::int32_t> node_of = engine_.node_of();
  const auto node = [&](std::int32_t process) {
    return node_of[static_cast<std::size_t>(process)];
  };
  if (hello.process < 0 || hello.process >= static_cast<std::int32_t>(node_of.size())) return false;
  if (hello.slot_bytes < Config::kLeastSlotBytes) return false;
  if (node(hello.process) != node(engine_.process())) return true;
  const shm::Segment& segment = engine_.segment();
  if (hello.segment_id != segment.id()) return false;
  if (hello.node_rank < 0 || hello.node_rank >= segment.ranks()) return false;
  const shm::AreaLayout layout = area_layout();
  return segment.holds_in_control(hello.node_rank, hello.area.area, layout.bytes()) &&
         segment.holds_in_control(hello.node_rank, hello.area.pair_lines, layout.pair_bytes());
}

void Team::agree_limits(std::span<const Hello> hellos) {
  std::vector<std::int32_t> node_of;
  ListTerms lists = engine_.list_terms();
  limits_.slot_bytes = hellos.front().slot_bytes;
  limits_.multicast_bytes = 0;
  limits_.aggregates = false;
  limits_.domain_costs.cross_fs = hellos.front().cross_fs;
  for (const Hello& hello : hellos) {
    limits_.slot_bytes = std::min(limits_.slot_bytes, hello.slot_bytes);
    limits_.crowded = limits_.crowded || hello.crowded != 0;
    limits_.sockets = limits_.sockets || hello.sockets != 0;
    limits_.reproducible = limits_.reproducible || hello.reproducible != 0;
    lists.agree(hello.lists);
    limits_.domain_costs.cross_fs = std::min(limits_.domain_costs.cross_fs, hello.cross_fs);
    same_settings_ = same_settings_ && hello.settings_hash == hellos.front().settings_hash;
    node_of.push_back(engine_.node_of()[static_cast<std::size_t>(hello.process)]);
  }
  auto nodes = std::make_shared<const Nodes>(node_of);
  limits_.domains = agree_domains(hellos, *nodes);
  if (nodes->count() == 1) return;
  limits_.nodes = std::move(nodes);
  if (engine_.network() == nullptr) return;
  const auto largest = static_cast<std::int64_t>(engine_.network()->largest_message());
  limits_.slot_bytes = std::min(limits_.slot_bytes, largest);
  limits_.slot_bytes = longest_message(limits_.slot_bytes, size());
  limits_.send_bytes = static_cast<std::int64_t>(engine_.network()->largest_send());
  lists.give(limits_);
}

// Null: nothing is known beyond the nodes. A node that has a member of which nothing is known is
// one domain.
std::shared_ptr<const Nodes> Team::agree_domains(std::span<const Hello> hellos,
                                                 const Nodes& nodes) {
  constexpr std::int32_t kMostOfNode = 1024;
  const auto domain_of = [&](Rank rank) { return hellos[static_cast<std::size_t>(rank)].domain; };
  std::vector<std::int32_t> names(hellos.size());
  for (std::int32_t node = 0; node < nodes.count(); ++node) {
    const std::span<const Rank> members = nodes.members(node);
    const bool known = std::ranges::all_of(
        members, [&](Rank rank) { return domain_of(rank) >= 0 && domain_of(rank) < kMostOfNode; });
    for (const Rank rank : members) {
      names[static_cast<std::size_t>(rank)] = node * kMostOfNode + (known ? domain_of(rank) : 0);
    }
  }
  auto domains = std::make_shared<const Nodes>(names);
  return domains->count() > nodes.count() ? domains : nullptr;
}

void Team::connect(std::span<const Hello> hellos) {
  const auto elsewhere = [&](int rank) {
    return limits_.nodes && limits_.nodes->node_of(rank) != limits_.nodes->node_of(this->rank());
  };
  std::vector<shm::Member> members;
  for (int i = 0; i < size(); ++i) {
    const Hello& hello = hellos[static_cast<std::size_t>(i)];
    members.push_back({.node_rank = elsewhere(i) ? -1 : hello.node_rank,
                       .area = hello.area,
                       .generation = hello.generation,
                       .in_domain = limits_.share_domain(i, rank())});
  }
  endpoint_.emplace(engine_.segment(), members, rank(), area_layout());
  if (!limits_.nodes) return;
  const auto me = static_cast<std::size_t>(rank());
  links_ = std::make_unique<net::Links>(*engine_.network(), size(), *pair_ids_);
  for (int i = 0; i < size(); ++i) {
    const Hello& hello = hellos[static_cast<std::size_t>(i)];
    if (!elsewhere(i)) continue;
    links_->add(
        i,
        {.process = hello.process,
         .peer_id = hello.pair_ids + static_cast<std::uint32_t>(rank()),
         .generation = hellos[me].generation,
         .peer_generation = hello.generation,
         .slot_bytes = static_cast<std::uint64_t>(limits_.slot_bytes),
         .send_bytes = static_cast<std::uint64_t>(std::min(limits_.slot_bytes, limits_.send_bytes)),
         .gather_entries = static_cast<std::size_t>(limits_.gather_entries)},
        *endpoint_);
  }
  engine_.network()->end_making(*pair_ids_);
}

void Team::begin(Run& run) {
  in_flight_.push_back(&run);
  run.begin(++started_);
  if (run.plan().learned.length > 0) staged_ = true;
}

Run* Team::next_deferred() {
  if (state() != State::kReady || staged_ || waiting_.empty()) return nullptr;
  Run* const run = waiting_.front();
  waiting_.erase(waiting_.begin());
  return run;
}

void Team::complete(Run& run) {
  run.set_state(Run::State::kDone);
  const std::uint64_t done = endpoint_->done();
  note_received(run);
  if (in_flight_.size() == 1) [[likely]] {
    in_flight_.clear();
    note_done();
    if (links_) links_->report(endpoint_->done_word(), true);
    return;
  }
  in_flight_[run.collective() - done - 1] = nullptr;
  if (in_flight_.front() != nullptr) return;
  const auto still = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [](const Run* other) { return other != nullptr; });
  endpoint_->set_done(done + static_cast<std::uint64_t>(still - in_flight_.begin()));
  in_flight_.erase(in_flight_.begin(), still);
  if (!in_flight_.empty()) in_flight_.front()->tell_releases();
  wake_readers(*this, shm::Pool::kToAll);
  if (!links_) return;
  const bool all = std::find(in_flight_.begin(), in_flight_.end(), nullptr) == in_flight_.end();
  links_->report(endpoint_->done_word(), all);
}

void Team::check_peers() {
  if (in_flight_.empty()) return;
  const Run& oldest = *in_flight_.front();
  endpoint_->tell_call(oldest.collective(), oldest.signature());
  if (links_) links_->tell_all(endpoint_->done_word(), endpoint_->call_word());
  for (int i = 0; i < size() && state() == State::kReady; ++i) {
    if (i != rank()) check_member(i, oldest);
  }
  seen_in_vain_ = in_vain_;
  if (state() == State::kReady && engine_.settings().watchdog_ms > 0) tell_who_is_missing(oldest);
}

void Team::tell_who_is_missing(const Run& oldest) {
  constexpr int kMostNamed = 16;
  const std::int64_t limit_ms = engine_.settings().watchdog_ms;
  const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::steady_clock::now().time_since_epoch())
                                  .count();
  const std::uint64_t collective = oldest.collective();
  if (watched_.collective != collective) watched_ = {collective, now_ms, now_ms};
  if (now_ms - watched_.told_ms < limit_ms) return;
  watched_.told_ms = now_ms;
  const std::int64_t waited_ms = now_ms - watched_.since_ms;
  std::string missing;
  int count = 0;
  int unknown = 0;
  for (int i = 0; i < size(); ++i) {
    const std::uint64_t completed = endpoint_->completed_by(i);
    if (i == rank() || completed >= collective || endpoint_->waits_in(i, collective)) continue;
    const net::Pair* const pair = links_ ? links_->pair(i) : nullptr;
    if (pair != nullptr && !pair->is_used()) {
      ++unknown;  // such ranks tell each other nothing
    } else if (++count <= kMostNamed) {
      missing += (count > 1 ? ", " : "; not in it: rank ") + std::to_string(i) +
                 " (has completed " + std::to_string(completed) + ")";
    }
  }
  if (count > kMostNamed) missing += " and " + std::to_string(count - kMostNamed) + " more";
  if (unknown > 0)
    missing += "; nothing is known of " + std::to_string(unknown) + " on other nodes";
  if (missing.empty()) missing = "; all others are in it or have completed it";
  if (oldest.wants_room() != 0)
    missing += "; it has no room for a message until others have been read (CARILLON_POOL_MIB)";
  log(LogLevel::kWarning, "watchdog: rank " + std::to_string(rank()) + " of a team of " +
                              std::to_string(size()) + (name_.empty() ? "" : " (" + name_ + ")") +
                              " has waited for " + std::to_string(waited_ms / 1000) + "." +
                              std::to_string(waited_ms % 1000 / 100) + " s in its collective " +
                              std::to_string(collective) + " on the team, " +
                              std::string(oldest.collective_name()) + missing);
}

bool Team::all_are_in(std::uint64_t collective) {
  for (int i = 0; i < size(); ++i) {
    if (i == rank()) continue;
    const std::uint64_t completed = endpoint_->completed_by(i);
    if (completed < collective && !endpoint_->waits_in(i, completed + 1)) return false;
  }
  return true;
}

std::vector<int> Team::node_ranks() {
  std::vector<int> ranks;
  for (int i = 0; i < size(); ++i) {
    if (endpoint_->peer(i).node_rank >= 0) ranks.push_back(endpoint_->peer(i).node_rank);
  }
  return ranks;
}

void Team::check_member(int rank, const Run& oldest) {
  const std::uint64_t collective = oldest.collective();
  const int node_rank = endpoint_->peer(rank).node_rank;
  net::Pair* const pair = links_ ? links_->pair(rank) : nullptr;
  // A member that gave up before it knew the others has told none of them: who asks it for its end
  // of the pair is told. Groups and switches are set up by exchanges of those who know each other.
  const bool all_know_all = multicast_ != nullptr || aggregation_ != nullptr;
  if (pair != nullptr && !pair->is_used() && !all_know_all && oldest.waits_for(rank)) pair->ask();
  // A member that completed the collective has done its part, whatever became of it.
  const bool needed = endpoint_->completed_by(rank) < collective || oldest.waits_for(rank);
  // Who has given up has said why; that its connections then end says less.
  if (endpoint_->gave_up(rank) != 0) {
    fail(given_up_by(rank, collective));
    return;
  }
  if (pair != nullptr && !pair->status().ok() && needed) {
    if (engine_.may_still_come(pair->place().process)) return;
    fail(unreachable(rank, collective, pair->status()));
    return;
  }
  Status reason;
  Lifeline::State life = Lifeline::State::kUnknown;
  if (pair == nullptr) {
    if (engine_.segment().died(node_rank)) life = Lifeline::State::kDead;
    if (engine_.segment().left(node_rank)) life = Lifeline::State::kLeft;
  } else if (pair->peer_closed()) {
    life = Lifeline::State::kLeft;
  } else if (pair->is_used() || oldest.waits_for(rank)) {
    life = engine_.look_at(pair->place().process, &reason);
  }
  // Who does not answer may be busy elsewhere; who cannot be reached at all never will.
  if (life == Lifeline::State::kUnreachable &&
      pair->opening_s() > static_cast<double>(engine_.settings().join_timeout_s)) {
    fail(Status(Code::kTimeout,
                "rank " + std::to_string(rank) + " of a team of " + std::to_string(size()) +
                    " has not answered over " + engine_.network()->name() + " for " +
                    std::to_string(engine_.settings().join_timeout_s) +
                    " s (CARILLON_JOIN_TIMEOUT_S), and " + std::string(reason.message())));
    return;
  }
  // Not before the look: who has ended completed what it has before that. And once: a member that
  // gives up now has not completed anything by it.
  const std::uint64_t completed = endpoint_->completed_by(rank);
  if (shm::Endpoint::error_in(completed) != 0) return fail(given_up_by(rank, collective));
  const bool died = life == Lifeline::State::kDead;
  if (completed < collective) {
    if (died || life == Lifeline::State::kLeft) {
      fail_ended(rank, collective, died, reason);
    } else if (endpoint_->call_differs(rank, collective, oldest.signature())) {
      fail_mismatch(rank, collective);
    }
  } else if (oldest.waits_in_vain(rank)) {
    // From another node, what is said of a message may come before it: one more look.
    in_vain_ = collective;
    if (pair == nullptr || seen_in_vain_ == collective) fail_mismatch(rank, collective);
  }
}

bool Team::quiet() {
  if (state() == State::kAgreeing) return false;
  if (!endpoint_) return true;
  TeamMulticast* const groups = multicast();
  // Both make progress.
  const bool left = aggregation() == nullptr || aggregation()->quiet();
  const bool silent = (groups == nullptr || groups->quiet()) && left;
  if (links_ && state() == State::kReady && !links_->close(endpoint_->done_word())) return false;
  if (!silent) return false;
  closed_ = state() == State::kReady;
  return endpoint_->everybody_done(started_);
}

void Team::abandon() {
  if (state() == State::kAgreeing && pair_ids_) engine_.network()->end_making(*pair_ids_);
}

void wake_sleeping_readers(Team& team, int reader) {
  shm::Segment& segment = team.engine().segment();
  for (int i = 0; i < team.size(); ++i) {
    const shm::Peer& peer = team.endpoint().peer(i);
    const bool reads = reader == i || reader == shm::Pool::kToAll ||
                       (reader == shm::Pool::kToDomain && peer.in_domain);
    if (i != team.rank() && peer.node_rank >= 0 && reads) {
      shm::wake(segment, peer.node_rank);
    }
  }
}

}  // namespace carillon
