// SPDX-License-Identifier: Apache-2.0
//
// Messages that are sent and received by the network alone, from the places of one list to those of
// another (net/placed.h).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {
namespace {

// What a schedule overwrites soon after it has sent it, nobody may ask for before: then this run
// and its readers would wait for each other. Asked for or not, after so long it is copied.
constexpr auto kFlushPatience = std::chrono::milliseconds(100);

}  // namespace

template <typename Clock>
bool Run::write_placed(const Instruction& in, const Strand& strand, shm::Peer& peer,
                       const Part& part, Clock& clock) {
  net::Pair& pair = *peer.remote;
  net::Network& network = *team_->engine().network();
  if (!pair.may_announce(part.number)) return refused(in, pair);
  if (reads_in_place_ && !sources_stand()) return false;
  const bool lasts = in.gather != 0 && !plan_->gathers[in.gather - 1U].hasty;
  net::GatheredPut* const put = lasts ? gathered(in, strand, part) : nullptr;
  const net::Pair::Listed message{.number = part.number,
                                  .header = header_of(part.number, 0),
                                  .length = static_cast<std::uint64_t>(part.length),
                                  .two_sided = true};
  if (put != nullptr) {
    const auto list = std::span(put->list).subspan(1);  // without a head
    if (pair.takes_placed(list)) {
      if (!pair.announce(message, list, nullptr, &put->under_way)) return refused(in, pair);
      note_sent(peer, part.number);
      count_sent(part, true);
      return true;
    }
  }
  const auto buffer = network.placed_buffers().take(message.length);
  if (!buffer.ok()) {
    fail_unreachable(plan_->uses[in.use].peer, buffer.status());
    return false;
  }
  net::Buffer& packed = *buffer.value();
  pack(packed.data, in, strand, part, clock);
  packed.held = true;
  const wire::Piece whole{packed.data, message.length, packed.registration};
  if (!gathers_) gathers_ = std::make_unique<net::Gathers>();
  packed.held = pair.announce(message, {&whole, 1}, &packed, &gathers_->copied());
  if (!packed.held) return refused(in, pair);
  copied_bytes_ += message.length;
  sent_copied_bytes_ += message.length;
  note_sent(peer, part.number);
  count_sent(part, false);
  return true;
}

template bool Run::write_placed(const Instruction&, const Strand&, shm::Peer&, const Part&,
                                NoClock&);
template bool Run::write_placed(const Instruction&, const Strand&, shm::Peer&, const Part&,
                                LapClock&);

// Where it goes: to the recv's own list, or to memory of the network's, to be copied from there.
Status Run::begin_placed(const Instruction& in, const Strand& strand, const Part& part,
                         const Received& received, net::Placed& placed) {
  net::Pair& pair = *team_->endpoint().peer(plan_->uses[in.use].peer).remote;
  net::Announcement announcement;
  std::memcpy(&announcement, received.announcement, sizeof announcement);
  std::optional<net::Parts> parts;
  if (list_of(in, strand, part, placed.to)) parts = pair.parts_to_fill(placed.to);
  const bool in_place = parts.has_value();
  if (!in_place) {
    const std::size_t index = index_of(strand);
    const auto piece = fetches().landing(plan_->slot_bases + index, announcement.bytes);
    if (!piece.ok()) return piece.status();
    placed.to.assign(1, piece.value());
    parts = net::cut(placed.to, 1);
  }
  placed.start(parts->with(announcement.parts()), in_place, pair, part.number);
  if (in_place) {
    net::Counters& counters = team_->engine().network()->counters();
    ++counters.scattered;
    counters.scattered_entries += placed.to.size();
  }
  return {};
}

// False: not there yet, or failed.
bool Run::receive_placed(const Instruction& in, const Strand& strand, const Part& part,
                         Received* received) {
  const int peer = plan_->uses[in.use].peer;
  net::Pair& pair = *team_->endpoint().peer(peer).remote;
  net::Placed& placed = fetches().placed_of_strand(index_of(strand));
  if (placed.to.empty()) {
    if (team_->endpoint().gave_up(peer) != 0) {
      fail_given_up(peer);
      return false;
    }
    if (Status status = begin_placed(in, strand, part, *received, placed); !status.ok()) {
      fail(std::move(status));
      return false;
    }
  }
  const auto filled = pair.receive_placed(part.number, placed);
  if (!filled.ok()) fail_unreachable(peer, filled.status());
  if (!filled.ok() || !filled.value()) return false;
  received->data = placed.to.front().data;
  received->landed = placed.in_place;
  placed.end();
  return true;
}

// May what the put has captured be overwritten, because it has been copied?
bool Run::stood_in(std::size_t put) {
  if (!plan_->two_sided) return false;
  const auto now = std::chrono::steady_clock::now();
  if (flushing_since_ == std::chrono::steady_clock::time_point()) flushing_since_ = now;
  if (now - flushing_since_ < kFlushPatience) return false;
  net::Pair* const pair = team_->endpoint().peer(plan_->gathers[put].peer).remote;
  const net::Counters& counters = team_->engine().network()->counters();
  const std::uint64_t copied_before = counters.sent_copied_bytes;
  for (const net::Buffer* const one : gathers_->put(put).under_way) {
    const auto copied = pair->stand_in(*one);
    if (!copied.ok() || copied.value() == nullptr) continue;
    gathers_->copied().push_back(copied.value());
  }
  // They were counted as read where they stood.
  const std::uint64_t moved = counters.sent_copied_bytes - copied_before;
  team_->engine().traffic().sent_in_place_bytes -= moved;
  team_->engine().traffic().sent_copied_bytes += moved;
  return gathers_->ended(put);
}

void Run::tell_awaited() {
  if (fetches_) fetches_->tell_rest();
}

void Run::stop_awaiting() {
  if (fetches_) fetches_->stop_awaiting();
}

}  // namespace carillon
