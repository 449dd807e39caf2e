// SPDX-License-Identifier: Apache-2.0
#include "engine/team.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/wake.h"

namespace carillon {

// What every member tells every other. Plain data: it travels as bytes.
struct Team::Hello {
  std::uint64_t segment_id = 0;  // 0: this member could not join its node
  std::uint64_t world = 0;
  std::uint64_t area_offset = 0;
  std::uint64_t generation = 0;
  std::int64_t slot_bytes = 0;
  std::uint64_t settings_hash = 0;
  std::uint32_t crowded = 0;
  std::int32_t node_rank = 0;
  std::int32_t process = 0;
  std::uint32_t pair_ids = 0;
};

Team::Team(Engine& engine, const crl_oob_t& oob)
    : engine_(engine), oob_(oob), gather_(std::make_unique<Gather<Hello>>()) {
  Hello mine{.world = engine.world(), .process = engine.process()};
  if (engine.joined()) {
    area_ = engine.allocate_area(area_bytes());
    if (area_) {
      mine.segment_id = engine.segment().id();
      mine.area_offset = *area_;
      mine.generation = engine.new_generation();
      shm::Endpoint::open_area(engine.segment(), *area_, mine.generation);
    }
    mine.node_rank = engine.node_rank();
  }
  mine.slot_bytes = engine.settings().slot_bytes;
  if (engine.network() != nullptr && size() > 1) {
    pair_ids_ = engine.network()->take_ids(size(), mine.generation);
    mine.pair_ids = pair_ids_.value_or(0);
    if (!pair_ids_) mine.segment_id = 0;
  }
  mine.crowded = engine.crowded() ? 1 : 0;
  mine.settings_hash = std::hash<std::string>()(engine.settings().algorithm);
  if (Status status = gather_->post(oob, mine); !status.ok()) {
    gather_.reset();
    fail(std::move(status));
  }
}

Team::~Team() {
  (void)gather_.release();  // not done: left alone for ever
  if (endpoint_ && engine_.joined()) engine_.pool().forget(&*endpoint_);
  if (area_) engine_.release_area(*area_, area_bytes());
  closed_ = closed_ && (!links_ || links_->unbroken());
  links_.reset();
  // Members that have not seen the team fail may still name its pairs.
  if (pair_ids_ && (!endpoint_ || closed_)) engine_.network()->return_ids(*pair_ids_);
}

std::size_t Team::area_size() const {
  return static_cast<std::size_t>(std::min(size(), engine_.segment().ranks()));
}

void Team::progress_agreement() {
  if (state() != State::kAgreeing) return;
  switch (gather_->test()) {
    case Code::kInProgress: return;
    case Code::kOk: agree(); return;
    default:
      fail(Status(Code::kSystem, "the bootstrap allgather of a team of " + std::to_string(size()) +
                                     " ranks failed"));
  }
}

// Every member sees the same values here, so every member comes to the same end.
void Team::agree() {
  const auto gather = std::move(gather_);
  const auto hellos = gather->all();
  if (Status status = check_hellos(hellos); !status.ok()) {
    fail(std::move(status));
    return;
  }
  agree_limits(hellos);
  if (limits_.nodes && engine_.network() == nullptr) {
    fail(Status(Code::kUnsupported, "the team's members are on " +
                                        std::to_string(limits_.nodes->count()) + " nodes, and " +
                                        std::string(engine_.network_status().message())));
    return;
  }
  connect(hellos);
  state_.store(State::kReady, std::memory_order_release);
  if (links_ && !engine_.network_status().ok()) fail(engine_.network_status());
}

Status Team::check_hellos(std::span<const Hello> hellos) const {
  const auto processes = static_cast<std::int32_t>(engine_.node_of().size());
  for (const Hello& hello : hellos) {
    if (hello.segment_id == 0) {
      return {Code::kUnsupported,
              "a member of the team could not join its node, or has no room for one more team"};
    }
    if (hello.world != hellos.front().world || hello.process < 0 || hello.process >= processes) {
      return {Code::kUnsupported, "the team's members were not started together"};
    }
  }
  return {};
}

void Team::agree_limits(std::span<const Hello> hellos) {
  std::vector<std::int32_t> node_of;
  for (const Hello& hello : hellos) {
    limits_.slot_bytes = std::min(limits_.slot_bytes, hello.slot_bytes);
    limits_.crowded = limits_.crowded || hello.crowded != 0;
    same_settings_ = same_settings_ && hello.settings_hash == hellos.front().settings_hash;
    node_of.push_back(engine_.node_of()[static_cast<std::size_t>(hello.process)]);
  }
  auto nodes = std::make_shared<const Nodes>(node_of);
  if (nodes->count() == 1) return;
  limits_.nodes = std::move(nodes);
  if (engine_.network() == nullptr) return;
  const auto largest = static_cast<std::int64_t>(engine_.network()->largest_message());
  limits_.slot_bytes = std::min(limits_.slot_bytes, largest);
  limits_.slot_bytes = net::longest_message(limits_.slot_bytes, size());
  limits_.send_bytes = static_cast<std::int64_t>(engine_.network()->largest_send());
}

void Team::connect(std::span<const Hello> hellos) {
  const auto elsewhere = [&](int rank) {
    return limits_.nodes && limits_.nodes->node_of(rank) != limits_.nodes->node_of(this->rank());
  };
  std::vector<shm::Member> members;
  for (int i = 0; i < size(); ++i) {
    const Hello& hello = hellos[static_cast<std::size_t>(i)];
    members.push_back({elsewhere(i) ? -1 : hello.node_rank, hello.area_offset, hello.generation});
  }
  endpoint_.emplace(engine_.segment(), members, rank(), area_size());
  if (!limits_.nodes) return;
  const auto me = static_cast<std::size_t>(rank());
  links_ = std::make_unique<net::Links>(*engine_.network(), size(), *pair_ids_);
  for (int i = 0; i < size(); ++i) {
    const Hello& hello = hellos[static_cast<std::size_t>(i)];
    if (!elsewhere(i)) continue;
    links_->add(i,
                {.process = hello.process,
                 .peer_id = hello.pair_ids + static_cast<std::uint32_t>(rank()),
                 .generation = hellos[me].generation,
                 .peer_generation = hello.generation,
                 .slot_bytes = static_cast<std::uint64_t>(limits_.slot_bytes),
                 .send_bytes =
                     static_cast<std::uint64_t>(std::min(limits_.slot_bytes, limits_.send_bytes))},
                *endpoint_);
  }
  engine_.network()->end_making(*pair_ids_);
}

void Team::begin(Run& run) {
  run.begin(++started_);
  in_flight_.push_back(&run);
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
  if (links_) run.note_received(*links_);
  if (in_flight_.size() == 1) [[likely]] {
    in_flight_.clear();
    endpoint_->set_done(done + 1);
    wake_readers(*this, shm::Pool::kToAll);
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

void Team::fail(Status status) {
  if (pair_ids_ && !links_) engine_.network()->end_making(*pair_ids_);
  // Members that have not seen it fail may write to its area: it is not used again.
  area_.reset();
  status_ = std::move(status);
  state_.store(State::kFailed, std::memory_order_release);
  for (Run* run : in_flight_) {
    if (run != nullptr) run->fail(status_);
  }
  for (Run* run : waiting_) run->fail(status_);
  in_flight_.clear();
  waiting_.clear();
  if (!endpoint_) return;
  endpoint_->give_up(-static_cast<int>(status_.code()));
  wake_readers(*this, shm::Pool::kToAll);
  if (!links_) return;
  links_->give_up(endpoint_->done_word());
  engine_.network()->settle();
}

void Team::fail_ended(int rank, std::uint64_t collective, bool died, const Status& reason) {
  const int node_rank = endpoint_->peer(rank).node_rank;
  const std::string where =
      node_rank < 0 ? "on another node" + (reason.ok() ? "" : ": " + std::string(reason.message()))
                    : "pid " + std::to_string(engine_.segment().state(node_rank).pid.load());
  fail(Status(Code::kPeerDead,
              "rank " + std::to_string(rank) + " of a team of " + std::to_string(size()) + " (" +
                  where + ") " + (died ? "died" : "has destroyed its context") + "; collective " +
                  std::to_string(collective) + " of the team cannot complete at rank " +
                  std::to_string(this->rank())));
}

void Team::fail_mismatch(int rank, std::uint64_t collective) {
  fail(Status(Code::kMismatch,
              "rank " + std::to_string(rank) + " of a team of " + std::to_string(size()) +
                  " waits in or has ended another call than rank " + std::to_string(this->rank()) +
                  " waits in (its collective " + std::to_string(collective) +
                  " on the team); do all ranks call the same collectives in the same order, with "
                  "the same sizes, roots and operators?"));
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
  if (state() == State::kFailed) log(LogLevel::kError, status_.to_string());
}

void Team::check_member(int rank, const Run& oldest) {
  const std::uint64_t collective = oldest.collective();
  const int node_rank = endpoint_->peer(rank).node_rank;
  const net::Pair* const pair = links_ ? links_->pair(rank) : nullptr;
  // A member that completed the collective has done its part, whatever became of it.
  const bool needed = endpoint_->completed_by(rank) < collective || oldest.waits_for(rank);
  if (pair != nullptr && !pair->status().ok() && needed) {
    fail(pair->status());
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
  const bool died = life == Lifeline::State::kDead;
  if (endpoint_->completed_by(rank) < collective) {
    if (died || life == Lifeline::State::kLeft) {
      fail_ended(rank, collective, died, reason);
    } else if (endpoint_->call_differs(rank, collective, oldest.signature())) {
      fail_mismatch(rank, collective);
    }
  } else if (const int error = endpoint_->gave_up(rank); error != 0) {
    fail(Status(static_cast<Code>(-error),
                "rank " + std::to_string(rank) + " gave up a team of " + std::to_string(size()) +
                    " (its own message says why); collective " + std::to_string(collective) +
                    " of the team cannot complete at rank " + std::to_string(this->rank())));
  } else if (oldest.waits_in_vain(rank)) {
    // From another node, what is said of a message may come before it: one more look.
    in_vain_ = collective;
    if (pair == nullptr || seen_in_vain_ == collective) fail_mismatch(rank, collective);
  }
}

bool Team::quiet() {
  if (state() == State::kAgreeing) return false;
  if (!endpoint_) return true;
  if (links_ && state() == State::kReady && !links_->close(endpoint_->done_word())) return false;
  closed_ = state() == State::kReady;
  return endpoint_->everybody_done(started_);
}

void Team::abandon() {
  if (state() == State::kAgreeing && pair_ids_) engine_.network()->end_making(*pair_ids_);
}

void wake_sleeping_readers(Team& team, int reader) {
  shm::Segment& segment = team.engine().segment();
  for (int i = 0; i < team.size(); ++i) {
    const int node_rank = team.endpoint().peer(i).node_rank;
    if (i != team.rank() && node_rank >= 0 && (reader == shm::Pool::kToAll || reader == i)) {
      shm::wake(segment, node_rank);
    }
  }
}

}  // namespace carillon
