// SPDX-License-Identifier: Apache-2.0
//
// Before and after the short way of a run (run_brief-inl.h).
#include <sched.h>

#include <algorithm>

#include "engine/engine.h"
#include "engine/lines-inl.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

// What stays as it is from call to call; and room for what a put may note, for nobody is there to
// catch what is thrown later.
void Run::find_brief_uses() {
  brief_uses_.clear();
  brief_ = plan_->brief && binding_.reduction.user == nullptr && !team_->spans_nodes();
  if (!brief_) return;
  begin_strands();
  if (plan_->posts_long) references_.reserve(plan_->code.size());
  handed_.reserve(static_cast<std::size_t>(
      std::count_if(plan_->code.begin(), plan_->code.end(), [](const Instruction& in) {
        return in.action == Action::kWait &&
               in.length > static_cast<std::int64_t>(shm::kInlineBytes);
      })));
  shm::Endpoint& endpoint = team_->endpoint();
  for (const ChannelUse& channel : plan_->uses) {
    shm::Peer& peer = endpoint.peer(channel.peer);
    const shm::Audience audience = audience_of(channel.flow);
    BriefUse use{.peer = &peer, .count = static_cast<std::uint64_t>(channel.count)};
    if (is_shared_out(channel.flow)) {
      use.next = &endpoint.next_shared_number(audience);
      use.out_lines = endpoint.shared_lines(audience);
    } else if (is_shared_in(channel.flow)) {
      use.next = &peer.shared_in_next[audience];
      use.in_lines = peer.shared_lines[audience];
    } else if (channel.flow == Flow::kOutPair) {
      use.next = &peer.out_next;
      use.out_lines = peer.out_lines;
    } else {
      use.next = &peer.in_next;
      use.in_lines = peer.in_lines;
    }
    brief_uses_.push_back(use);
  }
}

// Of messages that go by the pool or stay where they are, and of several pieces.
bool Run::put_long_briefly(const Instruction& in) {
  if (!team_->engine().pool().has_next(static_cast<std::uint64_t>(in.length))) return false;
  reads_in_place_ = false;  // or the run had left the short way
  Strand& strand = strands_.front();
  NoClock clock;
  return write_message(in, strand, {number_of(in, strand), 0, in.length}, clock);
}

// Of one that has come, but is not in its line; those that are not in a chunk go the long way.
bool Run::take_long_briefly(const Instruction& in, shm::Peer& peer, const shm::Line& line,
                            std::uint64_t header) {
  const std::uint8_t kind = shm::header_kind(header);
  const bool is_chunk =
      kind == shm::kChunk || kind == shm::kUncachedChunk || kind == shm::kHandedChunk;
  if (!is_chunk || shm::header_signature(header) != signature()) return false;
  const std::uint32_t slot = in.dst.base - kBaseSlots;
  shm::ChunkRef ref;
  const std::byte* const data = find_chunk(line, kind, &ref, &arrivals_[slot]);
  if (data == nullptr || ref.length < static_cast<std::uint64_t>(in.length)) return false;
  if (kind == shm::kHandedChunk) {
    if (handed_.size() == handed_.capacity()) return false;
    const std::uint64_t number = uses_[in.use].first + static_cast<std::uint64_t>(in.index);
    note_handed(in.use, number, {ref.offset, ref.chunk_bytes, ref.invites != 0});
  }
  shm::Endpoint::note_lag(peer, header, collective_);
  bases_[in.dst.base] = const_cast<std::byte*>(data);
  return true;
}

// For a message that has not come, where the ranks are more than the cores: who writes it may need
// this one. Most messages are there after a turn of the others, but in other caches: those of the
// whole collective are asked for at once. Now and then a run goes on as any other, which looks
// after the host and after dead peers.
bool Run::wait_in_turn(const Instruction& in) {
  constexpr int kMostTurns = 16;
  if (!team_->engine().yields_at_once()) return false;
  Use& mine = uses_[in.use];
  const shm::Peer& peer = *brief_uses_[in.use].peer;
  const std::uint64_t number = mine.first + static_cast<std::uint64_t>(in.index);
  const shm::Line& line = brief_uses_[in.use].in_lines[number % shm::kWindow];
  std::uint64_t header = 0;
  while (!comes(line, peer, number, 0, &header, mine.patience)) {
    if (++turns_ > kMostTurns) {
      turns_ = 0;
      return false;
    }
    sched_yield();
    for (std::size_t i = 0; i < brief_uses_.size(); ++i) {
      const BriefUse& use = brief_uses_[i];
      if (use.in_lines != nullptr) __builtin_prefetch(&use.in_lines[uses_[i].first % shm::kWindow]);
    }
  }
  return wait_briefly(in, 0);
}

// As if the run had come to this instruction as any other does.
bool Run::leave_brief(const Instruction& in) {
  reset(collective_);
  begin_strands();
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    uses_[i].begin_at(uses_[i].first, plan_->uses[i].count);
  }
  // What was released before needs no counting: the end of the collective tells of all.
  strands_.front().at = static_cast<std::uint32_t>(&in - plan_->code.data());
  return false;
}

}  // namespace carillon
