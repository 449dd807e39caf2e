// SPDX-License-Identifier: Apache-2.0
//
// A run's message numbers, and the reading side of its flow control: what it tells writers it has
// released, whose release of its own references it waits for, and whether a message can still come.
#include <algorithm>
#include <utility>

#include "engine/run.h"
#include "engine/team.h"
#include "engine/wake.h"

namespace carillon {
namespace {

bool incoming(const ChannelUse& channel) {
  return channel.flow == Flow::kInPair || is_shared_in(channel.flow);
}

}  // namespace

// In the order in which collectives begin, which is the same on all ranks.
void Run::take_numbers() {
  shm::Endpoint& endpoint = team_->endpoint();
  const ChannelUse* channel = plan_->uses.data();
  for (Use& use : uses_) {
    const std::int64_t count =
        channel->count + (channel->table == Table::kNone ? 0 : messages_by_table(*channel));
    const auto numbers = static_cast<std::uint64_t>(count);
    std::uint64_t first = 0;
    if (count == 0) {
      // Of tables: the peer is not even looked at, there may be many such.
    } else if (channel->flow == Flow::kOutPair) {
      std::uint64_t& next = endpoint.peer(channel->peer).out_next;
      first = std::exchange(next, next + numbers);
    } else if (channel->flow == Flow::kInPair) {
      std::uint64_t& next = endpoint.peer(channel->peer).in_next;
      first = std::exchange(next, next + numbers);
    } else {
      first = take_numbers_of_several(*channel, numbers);
    }
    use.begin_at(first, count);
    ++channel;
  }
}

std::int64_t Run::messages_by_table(const ChannelUse& channel) const {
  return messages_of(channel.table, length_of({.table = channel.table, .entry = channel.entry}, 0));
}

// Where several ranks read, or a network or a switch serves several.
std::uint64_t Run::take_numbers_of_several(const ChannelUse& channel, std::uint64_t numbers) {
  shm::Endpoint& endpoint = team_->endpoint();
  switch (channel.flow) {
    case Flow::kOutPair:
    case Flow::kInPair: break;
    case Flow::kInAll:
    case Flow::kInDomain: {
      std::uint64_t& next = endpoint.peer(channel.peer).shared_in_next[audience_of(channel.flow)];
      return std::exchange(next, next + numbers);
    }
    case Flow::kOutAll:
    case Flow::kOutDomain: {
      std::uint64_t& next = endpoint.next_shared_number(audience_of(channel.flow));
      return std::exchange(next, next + numbers);
    }
    case Flow::kOutTeam:
    case Flow::kOutNodes:
    case Flow::kOutLeaders: return team_->streams(channel.flow).take_out(numbers);
    case Flow::kInTeam:
    case Flow::kInLeaders: return team_->streams(channel.flow).take_in(channel.peer, numbers);
    case Flow::kSwitch: return team_->aggregation()->take_numbers(numbers);
    case Flow::kInNodes: return team_->reception().take(numbers);
  }
  return 0;
}

// Does the writer need to hear of releases before the end of the collective?
bool Run::hears_of(std::size_t use) const {
  const ChannelUse& channel = plan_->uses[use];
  const bool remote = team_->endpoint().peer(channel.peer).remote != nullptr;
  const std::int64_t sure =
      remote ? static_cast<std::int64_t>(net::Pair::kSureWindow) : most_untold(channel);
  return uses_[use].count > sure || uses_[use].awaited;
}

// False: the run has failed.
bool Run::release(std::uint16_t use, std::uint64_t number) {
  Use& state = uses_[use];
  if (state.in_place && !stands(use, number)) return false;
  if (!handed_.empty()) keep_handed(use, number);
  const std::uint64_t place = number - state.first;
  if (place < state.released) return true;  // it was got, and has been released since
  if (place != state.released) {
    state.ahead |= UINT64_C(1) << (place - state.released - 1);
    return true;
  }
  ++state.released;
  while ((state.ahead & 1) != 0) {
    ++state.released;
    state.ahead >>= 1;
  }
  state.ahead >>= 1;
  // Earlier collectives may still hold earlier messages: a count would cover those, too.
  // And where lines suffice, the writer needs no more than `done`.
  if (hears_of(use) && team_->oldest(collective_)) tell(use, state.released);
  return true;
}

// The chunk that a message stands in is this rank's once the message is released.
void Run::note_handed(std::uint16_t use, std::uint64_t number, const shm::Pool::Handed& chunk) {
  handed_.push_back({use, number, chunk});
}

void Run::keep_handed(std::uint16_t use, std::uint64_t number) {
  for (HandedOver& one : handed_) {
    if (one.use != use || one.number != number) continue;
    const int writer = team_->endpoint().peer(plan_->uses[use].peer).node_rank;
    team_->engine().pool().keep(writer, one.chunk);
    one = handed_.back();
    handed_.pop_back();
    return;
  }
}

// Nothing of them is read any more.
void Run::keep_all_handed() {
  while (!handed_.empty()) keep_handed(handed_.back().use, handed_.back().number);
}

// So many of the use's messages are released, and all of earlier collectives.
void Run::tell(std::size_t use, std::uint64_t count) {
  const ChannelUse& channel = plan_->uses[use];
  const std::uint64_t released = uses_[use].first + count;
  shm::Peer& peer = team_->endpoint().peer(channel.peer);
  uses_[use].told = count;
  if (peer.remote != nullptr) {
    peer.remote->note_acknowledged(released, uses_[use].awaited);
    return;
  }
  std::atomic<std::uint64_t>& ack =
      is_shared_in(channel.flow) ? peer.in_acks->of(audience_of(channel.flow)) : peer.in_acks->pair;
  // partner: the acquire loads in Endpoint::pair_released and shared_released of the writer
  ack.store(released, std::memory_order_release);
  wake_readers(*team_, channel.peer);
}

void Run::tell_all() {
  told_all_ = true;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].count == 0 || !incoming(plan_->uses[i])) continue;
    tell(i, static_cast<std::uint64_t>(uses_[i].count));
  }
}

void Run::tell_releases() {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (uses_[i].released == 0 || !incoming(plan_->uses[i])) continue;
    if (hears_of(i)) tell(i, uses_[i].released);
  }
}

void Run::note_received(net::Links& links) {
  links.network().counters().copied_bytes += std::exchange(copied_bytes_, 0);
  links.network().counters().sent_copied_bytes += std::exchange(sent_copied_bytes_, 0);
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const ChannelUse& channel = plan_->uses[i];
    if (uses_[i].count == 0 || channel.flow != Flow::kInPair) continue;
    if (links.pair(channel.peer) == nullptr) continue;
    const auto count = static_cast<std::uint64_t>(uses_[i].count);
    links.note_received(channel.peer, count, uses_[i].awaited && uses_[i].told < count);
  }
}

// Where the network needs this process to make progress, what is under way would wait until the
// next call; where it is not ordered, word of the collective's end could come before it.
bool Run::sent() {
  if (gathers_ && !gathers_->all_ended()) return false;
  while (!sent_.empty() && sent_.back()->operation.done()) sent_.pop_back();
  return sent_.empty();
}

bool Run::references_released() {
  shm::Endpoint& endpoint = team_->endpoint();
  while (!references_.empty()) {
    const Reference& last = references_.back();
    const ChannelUse& channel = plan_->uses[last.use];
    const bool released =
        is_shared_out(channel.flow)
            ? endpoint.shared_released(audience_of(channel.flow), last.number, collective_)
            : endpoint.pair_released(endpoint.peer(channel.peer), last.number, collective_);
    if (!released) return false;
    references_.pop_back();
  }
  return true;
}

// A send or recv that a run which has yet to move is at, but will not wait in.
bool Run::is_no_message(const Instruction& in) const {
  const Operand& end = in.action == Action::kSend ? in.a : in.dst;
  const bool streams = in.action == Action::kSend || in.action == Action::kRecv;
  return streams && messages_of(end.table, length_of(end, in.length)) == 0;
}

std::uint64_t Run::position() const {
  std::uint64_t hash = collective_;
  const auto add = [&](auto value) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  add(reinterpret_cast<std::uintptr_t>(plan_.get()));
  for (const Strand& strand : strands_) {
    add(strand.at);
    add(strand.iteration);
    add(strand.stream);
  }
  return hash;
}

bool Run::waits_for(int rank) const {
  return std::any_of(strands_.begin(), strands_.end(), [&](const Strand& strand) {
    if (strand.finished) return false;
    const Instruction& in = plan_->code[strand.at];
    if (in.action == Action::kFlush) return flushes_for(in, rank);
    if (in.action == Action::kAggregate) return team_->limits().is_leader(rank);
    if (in.action == Action::kMulticast) {
      return team_->streams(plan_->uses[in.use].flow).has(rank);
    }
    const bool moves = in.action == Action::kWait || in.action == Action::kRecv ||
                       in.action == Action::kPut || in.action == Action::kSend ||
                       in.action == Action::kReceive;
    if (is_no_message(in)) return false;
    return moves && !is_shared_out(plan_->uses[in.use].flow) && plan_->uses[in.use].peer == rank;
  });
}

bool Run::waits_in_vain(int rank) const {
  const shm::Peer& peer = team_->endpoint().peer(rank);
  return std::any_of(strands_.begin(), strands_.end(), [&](const Strand& strand) {
    const Instruction& in = plan_->code[strand.at];
    if (strand.finished || (in.action != Action::kWait && in.action != Action::kRecv)) return false;
    const ChannelUse& channel = plan_->uses[in.use];
    if (channel.peer != rank || is_no_message(in)) return false;
    const std::uint64_t number = number_of(in, strand) + static_cast<std::uint64_t>(strand.stream);
    // On its way, unless its line has been used again: then this rank has released a message there
    // that it never awaited.
    if (peer.remote != nullptr && peer.remote->was_sent(number) &&
        !peer.remote->was_sent(number + shm::kWindow)) {
      return false;
    }
    // partner: the release store in write_message of the peer
    const std::uint64_t header =
        incoming_line(channel, number).header.load(std::memory_order_acquire);
    return shm::header_tag(header) != static_cast<std::uint32_t>(number + 1);
  });
}

}  // namespace carillon
