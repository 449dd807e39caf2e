// SPDX-License-Identifier: Apache-2.0
//
// How a run ends that cannot go on, and what it says.
#include <algorithm>
#include <atomic>
#include <string>

#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

// Who has given up has said why; that its connections then end says less.
void Run::fail_unreachable(int rank, const Status& why) {
  if (team_->endpoint().gave_up(rank) != 0) return fail_given_up(rank);
  fail(team_->unreachable(rank, collective_, why));
}

void Run::fail_mismatch(const ChannelUse& channel) {
  fail(Status(Code::kMismatch,
              "rank " + std::to_string(channel.peer) + " of a team of " +
                  std::to_string(team_->size()) + " sent data of another call than rank " +
                  std::to_string(team_->rank()) + " makes (its collective " +
                  std::to_string(collective_) +
                  " on the team); do all ranks call the same collectives in the same order, with "
                  "the same sizes, roots and operators?"));
}

// Of a send whose first message says what stands behind it.
void Run::fail_other_messages(int rank) {
  fail(Status(Code::kMismatch, "rank " + std::to_string(rank) + " of a team of " +
                                   std::to_string(team_->size()) + " sent rank " +
                                   std::to_string(team_->rank()) +
                                   " other messages than its first one said (its collective " +
                                   std::to_string(collective_) + " on the team)"));
}

void Run::fail_freed(int rank) {
  fail(Status(Code::kInvalidArgument,
              "rank " + std::to_string(rank) + " of a team of " + std::to_string(team_->size()) +
                  " has no memory any more where its " + std::string(collective_name()) +
                  " (its collective " + std::to_string(collective_) +
                  " on the team) has data for rank " + std::to_string(team_->rank()) +
                  "; was a buffer freed or unmapped before the request was complete?"));
}

// Of bytes that are said to be where there are none.
void Run::fail_place(int rank, const shm::ChunkRef& ref) {
  const std::string where = Windows::is_reference(ref.offset)
                                ? "in a window that rank " + std::to_string(team_->rank()) +
                                      " has freed; complete the requests that use a window's "
                                      "memory before it"
                                : "at byte " + std::to_string(ref.offset) +
                                      " of the node's memory, where " +
                                      (team_->engine().segment().holds(ref.offset, ref.length)
                                           ? "no chunk of a pool is"
                                           : "there are not " + std::to_string(ref.length)) +
                                      "; its process is damaged";
  fail(Status(Code::kInvalidArgument, "rank " + std::to_string(rank) + " of a team of " +
                                          std::to_string(team_->size()) + " has data for its " +
                                          std::string(collective_name()) + " (its collective " +
                                          std::to_string(collective_) + " on the team) " + where));
}

void Run::fail_given_up(int rank) { fail(team_->given_up_by(rank, collective_)); }

// The team's failure follows: it takes the caller's memory back.
void Run::fail(Status status) {
  status_ = std::move(status);
  if (!handed_.empty()) keep_all_handed();
  set_state(State::kFailed);
  if (gathers_) gathers_->abandon();
}

std::vector<int> Run::gets_from() const {
  return fetches_ ? fetches_->under_way_from() : std::vector<int>();
}

bool Run::may_be_read() {
  shm::Endpoint& endpoint = team_->endpoint();
  return std::any_of(references_.begin(), references_.end(), [&](const Reference& one) {
    const int rank = plan_->uses[one.use].peer;
    if (is_shared_out(plan_->uses[one.use].flow)) return false;  // on this node
    shm::Peer& reader = endpoint.peer(rank);
    return reader.remote != nullptr && team_->reaches(rank) &&
           !endpoint.pair_released(reader, one.number, collective_);
  });
}

// Readers on this node look at the line again when they have read what is not in the team's memory.
// The fence behind it is Endpoint::give_up's.
void Run::withdraw_messages() {
  shm::Endpoint& endpoint = team_->endpoint();
  for (const Reference& one : references_) {
    const ChannelUse& channel = plan_->uses[one.use];
    const bool to_several = is_shared_out(channel.flow);
    if (!to_several && endpoint.peer(channel.peer).remote != nullptr) continue;
    shm::Line* const lines = to_several ? endpoint.shared_lines(audience_of(channel.flow))
                                        : endpoint.peer(channel.peer).out_lines;
    shm::Line& line = lines[one.number % shm::kWindow];
    const std::uint64_t header = line.header.load(std::memory_order_relaxed);
    if (shm::header_tag(header) != static_cast<std::uint32_t>(one.number + 1))
      continue;  // released
    line.header.store(shm::with_kind(header, shm::kWithdrawn), std::memory_order_relaxed);
  }
}

// Was the message still there when its bytes had been read in the writer's memory? Else they may
// have changed before.
bool Run::stands(std::uint16_t use, std::uint64_t number) {
  // partner: the fence in Endpoint::give_up of the writer
  std::atomic_thread_fence(std::memory_order_acquire);
  const shm::Line& line = incoming_line(plan_->uses[use], number);
  const std::uint64_t header = line.header.load(std::memory_order_relaxed);
  if (shm::header_kind(header) != shm::kWithdrawn) return true;
  fail_given_up(plan_->uses[use].peer);
  return false;
}

// Nothing may be passed on that comes of bytes in the heap of a writer that has given up.
bool Run::sources_stand() {
  // partner: the fence in Endpoint::give_up of the writer
  std::atomic_thread_fence(std::memory_order_acquire);
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const int writer = plan_->uses[i].peer;
    if (!uses_[i].in_place || team_->endpoint().gave_up(writer) == 0) continue;
    fail_given_up(writer);
    return false;
  }
  return true;
}

void Run::take_back() {
  if (fetches_) fetches_->finish();
}

}  // namespace carillon
