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
  std::uint64_t area_offset = 0;
  std::uint64_t generation = 0;
  std::int64_t slot_bytes = 0;
  std::uint64_t settings_hash = 0;
  std::uint32_t crowded = 0;
  std::int32_t node_rank = 0;
  std::uint32_t version = 0;
};

Team::Team(Engine& engine, const crl_oob_t& oob)
    : engine_(engine), oob_(oob), gather_(std::make_unique<Gather<Hello>>()) {
  Hello mine{.version = shm::kVersion};
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
  mine.crowded = engine.crowded() ? 1 : 0;
  mine.settings_hash = std::hash<std::string>()(engine.settings().algorithm);
  if (Status status = gather_->post(oob, mine); !status.ok()) {
    gather_.reset();
    fail(std::move(status));
  }
}

Team::~Team() {
  (void)gather_.release();  // not done: left alone for ever
  if (endpoint_) engine_.pool().forget(&*endpoint_);
  if (area_) engine_.release_area(*area_, area_bytes());
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
  std::vector<shm::Member> members;
  const Hello& first = gather->all().front();
  for (const Hello& hello : gather->all()) {
    if (hello.version != shm::kVersion) {
      fail(Status(Code::kUnsupported, "members of the team run different versions of carillon"));
      return;
    }
    if (hello.segment_id == 0 || hello.segment_id != first.segment_id) {
      fail(Status(Code::kUnsupported, "the team's members do not all share one node's memory"));
      return;
    }
    limits_.slot_bytes = std::min(limits_.slot_bytes, hello.slot_bytes);
    limits_.crowded = limits_.crowded || hello.crowded != 0;
    same_settings_ = same_settings_ && hello.settings_hash == first.settings_hash;
    members.push_back({hello.node_rank, hello.area_offset, hello.generation});
  }
  endpoint_.emplace(engine_.segment(), std::move(members), rank());
  state_.store(State::kReady, std::memory_order_release);
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
  if (in_flight_.size() == 1) [[likely]] {
    in_flight_.clear();
    endpoint_->set_done(done + 1);
    wake_readers(*this, shm::Pool::kToAll);
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
}

void Team::fail(Status status) {
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
}

void Team::fail_ended(int rank, std::uint64_t collective, bool died) {
  const int node_rank = endpoint_->peer(rank).node_rank;
  fail(Status(Code::kPeerDead,
              "rank " + std::to_string(rank) + " of a team of " + std::to_string(size()) +
                  " (pid " + std::to_string(engine_.segment().state(node_rank).pid.load()) + ") " +
                  (died ? "died" : "has destroyed its context") + "; collective " +
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
  const std::uint64_t collective = oldest.collective();
  endpoint_->tell_call(collective, oldest.signature());
  for (int i = 0; i < size() && state() == State::kReady; ++i) {
    if (i == rank()) continue;
    const int node_rank = endpoint_->peer(i).node_rank;
    const bool died = engine_.segment().died(node_rank);
    const bool left = engine_.segment().left(node_rank);
    // A member that completed the collective has done its part, whatever became of it.
    if (endpoint_->completed_by(i) < collective) {
      if (died || left) {
        fail_ended(i, collective, died);
      } else if (endpoint_->call_differs(i, collective, oldest.signature())) {
        fail_mismatch(i, collective);
      }
    } else if (const int error = endpoint_->gave_up(i); error != 0) {
      fail(Status(static_cast<Code>(-error),
                  "rank " + std::to_string(i) + " gave up a team of " + std::to_string(size()) +
                      " (its own message says why); collective " + std::to_string(collective) +
                      " of the team cannot complete at rank " + std::to_string(rank())));
    } else if (oldest.waits_in_vain(i)) {
      fail_mismatch(i, collective);
    }
  }
  if (state() == State::kFailed) log(LogLevel::kError, status_.to_string());
}

bool Team::quiet() {
  if (state() == State::kAgreeing) return false;
  return !endpoint_ || endpoint_->everybody_done(started_);
}

void wake_sleeping_readers(Team& team, int reader) {
  shm::Segment& segment = team.engine().segment();
  for (int i = 0; i < team.size(); ++i) {
    if (i != team.rank() && (reader == shm::Pool::kToAll || reader == i)) {
      shm::wake(segment, team.endpoint().peer(i).node_rank);
    }
  }
}

}  // namespace carillon
