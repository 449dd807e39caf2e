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
  std::int32_t node_rank = 0;
  std::uint32_t version = 0;
};

Team::Team(Engine& engine, const crl_oob_t& oob)
    : engine_(engine), oob_(oob), gather_(std::make_unique<Gather<Hello>>()) {
  Hello mine{.version = shm::kVersion};
  const auto members = static_cast<std::size_t>(oob.size);
  if (engine.joined()) {
    area_ = engine.allocate_area(shm::AreaLayout{members}.bytes());
    if (area_) {
      mine.segment_id = engine.segment().id();
      mine.area_offset = *area_;
      mine.generation = engine.new_generation();
    }
    mine.node_rank = engine.node_rank();
  }
  mine.slot_bytes = engine.settings().slot_bytes;
  mine.settings_hash = std::hash<std::string>()(engine.settings().algorithm);
  if (Status status = gather_->post(oob, mine); !status.ok()) fail(std::move(status));
}

Team::~Team() {
  if (area_ && endpoint_) engine_.pool().forget(&*endpoint_);
  if (area_) engine_.release_area(*area_);
}

void Team::progress_agreement() {
  if (state_ != State::kAgreeing) return;
  switch (gather_->test()) {
    case Code::kInProgress: return;
    case Code::kOk: agree(); return;
    default:
      area_.reset();  // some members may think the team is ready: its memory is not used again
      fail(Status(Code::kSystem, "the bootstrap allgather of a team of " +
                                     std::to_string(size()) + " ranks failed"));
  }
}

// Every member sees the same values here, so every member comes to the same end.
void Team::agree() {
  std::vector<shm::Member> members;
  const Hello& first = gather_->all().front();
  for (const Hello& hello : gather_->all()) {
    if (hello.version != shm::kVersion) {
      fail(Status(Code::kUnsupported, "members of the team run different versions of carillon"));
      return;
    }
    if (hello.segment_id == 0 || hello.segment_id != first.segment_id) {
      fail(Status(Code::kUnsupported, "the team's members do not all share one node's memory"));
      return;
    }
    limits_.slot_bytes = std::min(limits_.slot_bytes, hello.slot_bytes);
    same_settings_ = same_settings_ && hello.settings_hash == first.settings_hash;
    members.push_back({hello.node_rank, hello.area_offset, hello.generation});
  }
  gather_.reset();
  endpoint_.emplace(engine_.segment(), std::move(members), rank());
  state_ = State::kReady;
}

void Team::begin(Run& run) {
  run.begin(++started_);
  in_flight_.push_back(&run);
  if (run.plan().learned.length > 0) staged_ = true;
}

Run* Team::next_deferred() {
  if (state_ != State::kReady || staged_ || waiting_.empty()) return nullptr;
  Run* const run = waiting_.front();
  waiting_.erase(waiting_.begin());
  return run;
}

void Team::complete(Run& run) {
  run.set_state(Run::State::kDone);
  bool told = false;
  while (!in_flight_.empty() && in_flight_.front()->done()) {
    endpoint_->set_done(in_flight_.front()->collective());
    in_flight_.erase(in_flight_.begin());
    told = true;
  }
  if (!told) return;
  if (!in_flight_.empty()) in_flight_.front()->tell_releases();
  wake_readers(*this, shm::Pool::kToAll);
}

void Team::fail(Status status) {
  state_ = State::kFailed;
  status_ = std::move(status);
  for (Run* run : in_flight_) run->fail(status_);
  for (Run* run : waiting_) run->fail(status_);
  in_flight_.clear();
  waiting_.clear();
}

void Team::check_peers() {
  if (in_flight_.empty()) return;
  const std::uint64_t collective = in_flight_.front()->collective();
  for (int i = 0; i < size(); ++i) {
    const int node_rank = endpoint_->peer(i).node_rank;
    // A member that completed the collective has done its part, whatever became of it.
    if (!engine_.segment().died(node_rank) || endpoint_->completed_by(i) >= collective) continue;
    fail(Status(Code::kPeerDead,
                "rank " + std::to_string(i) + " of a team of " + std::to_string(size()) + " (pid " +
                    std::to_string(engine_.segment().state(node_rank).pid.load()) +
                    ") died; collective " + std::to_string(collective) +
                    " of the team cannot complete at rank " + std::to_string(rank())));
    log(LogLevel::kError, status_.to_string());
    return;
  }
}

bool Team::quiet() {
  if (state_ == State::kAgreeing) return false;
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
