// SPDX-License-Identifier: Apache-2.0
//
// Ranks that have no room for their messages. A team's oldest collective is sure of room in the
// pool only as long as that can grow (Pool); then its messages wait until others have been read.
// Mostly that comes. But the readers may be waiting for these very messages, or for others that
// have no room: then nobody would ever go on, and the team fails.
//
// A rank waits in vain, as far as it knows by itself, if all members of the teams whose messages
// are there are in their calls, and all of them look after the others twice without having moved
// on: whatever could move one of them on would have to come from one of them. Members that have no
// room either say so, and for whom they wait: they may be waiting for somebody who has yet to come.
// So nobody will ever go on if of all who are waited for, by however many others, each waits in
// vain, and has said so since.
#include <algorithm>
#include <chrono>
#include <vector>

#include "engine/engine.h"
#include "engine/team.h"

namespace carillon {
namespace {

constexpr std::uint32_t kHasRoom = 0, kWaitsForRoom = 1, kWaitsInVain = 2;

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::uint64_t Engine::position() const {
  std::uint64_t position = turnover_;
  for (const Run* run : active_) position = position * 31 + run->position();
  return position;
}

// The servlet does not move on what calls the program's operators.
bool Engine::moves_all(Mover mover) const {
  const auto needs_caller = [](const Run* run) { return run->needs_caller(); };
  return mover == Mover::kProgram || std::ranges::none_of(active_, needs_caller);
}

void Engine::note_look() {
  shm::RankState& mine = segment_->state(node_rank_);
  const std::uint64_t now = position();
  if (std::exchange(position_, now) != now) mine.moves.fetch_add(1, std::memory_order_relaxed);
  mine.looks.fetch_add(1, std::memory_order_release);  // partner: rank_looks, nobody_hopes
}

std::vector<Engine::RankLook> Engine::rank_looks() const {
  std::vector<RankLook> all;
  for (int rank = 0; rank < segment_->ranks(); ++rank) {
    const shm::RankState& state = segment_->state(rank);
    const std::uint64_t looks = state.looks.load(std::memory_order_acquire);  // partner: note_look
    all.push_back({.looks = looks, .moves = state.moves.load(std::memory_order_relaxed)});
  }
  return all;
}

// The teams whose messages hold this rank's pool, or have no room there, and up to which
// collective.
std::vector<Engine::Holder> Engine::holders_of_room(const std::vector<Team*>& wanting) {
  std::vector<Holder> holders;
  holders.reserve(wanting.size());
  for (Team* team : wanting) holders.push_back({team, team->oldest_run()->collective()});
  const auto add = [&](Team* team, const shm::Pool::Letter& letter) {
    if (!team->has_endpoint() || &team->endpoint() != letter.endpoint) return;
    const auto known = std::ranges::find(holders, team, &Holder::team);
    if (known == holders.end()) {
      holders.push_back({team, letter.collective});
    } else {
      known->collective = std::max(known->collective, letter.collective);
    }
  };
  pool_->each_letter([&](const shm::Pool::Letter& letter) {
    for (Team* team : teams_) add(team, letter);
    for (const auto& team : retired_) add(team.get(), letter);
  });
  return holders;
}

// Nobody in these teams has moved on since the look before the last: will anybody ever?
bool Engine::waits_in_vain(const std::vector<Holder>& holders) {
  const std::int64_t now_ms = steady_ms();
  std::vector<RankLook> looks = rank_looks();
  bool in_vain = !room_looks_.empty();
  bool all_still = in_vain;
  for (const Holder& holder : holders) {
    if (!holder.team->all_are_in(holder.collective)) {
      room_looks_.clear();
      return false;
    }
    for (const int rank : holder.team->node_ranks()) {
      const auto place = static_cast<std::size_t>(rank);
      if (!all_still || looks[place].moves != room_looks_[place].moves) {
        in_vain = all_still = false;
      } else if (looks[place].looks < room_looks_[place].looks + 2) {
        in_vain = false;
      }
    }
    // Of other nodes it is known that they are in the call, and not whether they move on.
    const std::int64_t patience_ms = settings_.join_timeout_s * 1000;
    if (holder.team->spans_nodes() && now_ms - room_since_ms_ < patience_ms) in_vain = false;
  }
  if (!all_still) {
    room_looks_ = std::move(looks);
    room_since_ms_ = now_ms;
  }
  return in_vain;
}

// Says which ranks of the node would have to go on. Before this rank says how it waits; and what it
// has said of other ranks before counts no more when others than these may go on.
void Engine::tell_whom(const std::vector<Holder>& holders) {
  const auto bits = segment_->room_held_by(node_rank_);
  std::vector<std::uint64_t> words(bits.size());
  for (const Holder& holder : holders) {
    for (const int rank : holder.team->node_ranks()) {
      const auto place = static_cast<std::size_t>(rank);
      words[place / 64] |= UINT64_C(1) << (place % 64);
    }
  }
  const auto is_told = [](const std::atomic<std::uint64_t>& bit, std::uint64_t word) {
    return bit.load(std::memory_order_relaxed) == word;
  };
  if (std::ranges::equal(bits, words, is_told)) return;
  // partner: nobody_hopes, which reads it again behind the bits
  segment_->state(node_rank_).room.store(kWaitsForRoom, std::memory_order_relaxed);
  for (std::size_t i = 0; i < words.size(); ++i) {
    bits[i].store(words[i], std::memory_order_release);  // partner: nobody_hopes
  }
}

// Of all ranks that this one waits for, and that those wait for, and so on: has none moved on since
// this one waits in vain, and does each that has no room wait in vain, too?
bool Engine::nobody_hopes() const {
  std::vector<bool> seen(room_looks_.size());
  std::vector<int> to_ask = {node_rank_};
  seen[static_cast<std::size_t>(node_rank_)] = true;
  while (!to_ask.empty()) {
    const int rank = to_ask.back();
    to_ask.pop_back();
    const RankLook& before = room_looks_[static_cast<std::size_t>(rank)];
    const shm::RankState& state = segment_->state(rank);
    // What it says it has said since: it looks after the others before it says so again.
    // Partners of what is read here: note_look, check_room, tell_whom.
    if (state.looks.load(std::memory_order_acquire) < before.looks + 2) return false;
    const std::uint32_t room = state.room.load(std::memory_order_acquire);
    if (room != kHasRoom && room != kWaitsInVain) return false;
    const auto bits = segment_->room_held_by(rank);
    for (std::size_t other = 0; room != kHasRoom && other < seen.size(); ++other) {
      const std::uint64_t word = bits[other / 64].load(std::memory_order_acquire);
      if ((word >> (other % 64) & 1) == 0 || seen[other]) continue;
      seen[other] = true;
      to_ask.push_back(static_cast<int>(other));
    }
    // It has said so of these: it takes that back before it tells of others (tell_whom).
    if (state.room.load(std::memory_order_relaxed) != room) return false;
    // Last, since who moves on says so before it says anything else: room that came in between is
    // no want of hope.
    if (state.moves.load(std::memory_order_relaxed) != before.moves) return false;
  }
  return true;
}

void Engine::check_room(Mover mover) {
  std::vector<Team*> wanting;
  for (Team* team : teams_) {
    const Run* const oldest = team->oldest_run();
    if (oldest != nullptr && oldest->wants_room() != 0) wanting.push_back(team);
  }
  std::atomic<std::uint32_t>& told = segment_->state(node_rank_).room;
  if (wanting.empty()) {
    if (told.load(std::memory_order_relaxed) != kHasRoom) {
      told.store(kHasRoom, std::memory_order_release);  // partner: nobody_hopes
      room_looks_.clear();
    }
    return;
  }
  const std::vector<Holder> holders = holders_of_room(wanting);
  bool in_vain = waits_in_vain(holders);
  tell_whom(holders);
  // Room that came since this rank looked for some may be of messages that are not seen any more;
  // and what others wait for then depends on others than these.
  if (in_vain) {
    const std::uint64_t before = position();
    progress(0, mover);
    in_vain = position() == before;
  }
  told.store(in_vain ? kWaitsInVain : kWaitsForRoom, std::memory_order_release);
  if (!in_vain || !nobody_hopes()) return;
  room_looks_.clear();
  wanting.front()->fail_for_want_of_room();
}

}  // namespace carillon
