// SPDX-License-Identifier: Apache-2.0
//
// Long messages between nodes that nobody copies: a put whose bytes keep their value tells where
// they are, and the wait gets them from there, if possible to where the schedule copies them
// anyway, and a recv to the places of its list, as far as the network takes lists. The writer's run
// ends when its readers have them.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/pieces.h"
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

net::Fetches& Run::fetches() {
  if (!fetches_) fetches_ = std::make_unique<net::Fetches>(*team_->engine().network());
  return *fetches_;
}

// All of the caller's buffer in which `bytes` lie, or all of the operand, where a table says what
// that is: registered once, for all messages from there or to there.
std::span<std::byte> Run::extent_of(std::span<std::byte> bytes, const Operand& operand,
                                    const Strand& strand) const {
  if (operand.table != Table::kNone) {
    return {at(operand, strand), static_cast<std::size_t>(length_of(operand, 0))};
  }
  const bool output = operand.base != kBaseInput;  // a message has landed there
  std::byte* const base = bases_[output ? kBaseOutput : kBaseInput];
  const std::int64_t size = output ? plan_->output_bytes : plan_->input_bytes;
  const bool inside = bytes.data() >= base && bytes.data() + bytes.size() <= base + size;
  return inside ? std::span(base, static_cast<std::size_t>(size)) : bytes;
}

// Where the message's bytes may stay until they have been read, if they may.
std::optional<net::Exposure> Run::exposure_of(const Instruction& in, const Strand& strand,
                                              const Part& part) {
  Engine& engine = team_->engine();
  if (!lasts(in) || part.length < engine.fetch_from_bytes()) return std::nullopt;
  const std::span bytes(at(in.a, strand) + part.offset, static_cast<std::size_t>(part.length));
  const auto where = fetches().regions().expose(bytes, extent_of(bytes, in.a, strand));
  if (where.ok()) return net::Exposure{where.value(), bytes.size()};
  engine.stop_fetching(where.status());
  return std::nullopt;
}

// The caller's memory if the network can write there, else some of its own.
Result<wire::Piece> Run::fetch_to(const Landing& to, std::size_t place, std::uint64_t length,
                                  bool* in_place) {
  *in_place = false;
  if (to.bytes.size() == length) {
    auto piece = fetches().regions().find(to.bytes, to.extent);
    *in_place = piece.ok();
    if (piece.ok()) return piece;
  }
  return fetches().landing(place, length);
}

// Posts as many places as one get takes, then the next ones. False: not all are filled yet.
Result<bool> Run::fill(net::Pair& pair, const net::Exposure& exposure, net::Fetch& fetch) {
  const auto most = std::min(team_->engine().network()->wire().capabilities().max_pieces,
                             static_cast<std::size_t>(team_->limits().gather_entries));
  while (fetch.ended < fetch.to.size()) {
    const auto rest = std::span(fetch.to).subspan(fetch.ended);
    const auto now = rest.first(std::min(most, rest.size()));
    if (!fetch.is_under_way()) {
      auto posted = pair.get(exposure.at.at(fetch.bytes), now, fetch.operation);
      if (!posted.ok() || !posted.value()) return posted;
      fetch.begun += now.size();
    }
    if (!fetch.operation.done()) return false;
    if (!fetch.operation.status().ok()) return fetch.operation.status();
    fetch.ended = fetch.begun;
    fetch.bytes += wire::total_bytes(now);
  }
  return true;
}

// Gets the message that `received` tells of. False: not there yet, or failed.
bool Run::fetch(const Instruction& in, const Strand& strand, std::uint64_t number,
                const Landing& to, Received* received) {
  const int peer = plan_->uses[in.use].peer;
  net::Pair& pair = *team_->endpoint().peer(peer).remote;
  const std::size_t index = index_of(strand);
  net::Fetch& fetch = fetches().of_strand(index);
  net::Exposure exposure;
  std::memcpy(&exposure, received->exposure, sizeof exposure);
  const bool has_list = in.action == Action::kRecv && in.piece_count > 0;
  if (fetch.to.empty() && has_list && list_of(in, strand, to.part, fetch.to)) {
    fetch.start(true);
    net::Counters& counters = team_->engine().network()->counters();
    ++counters.scattered;
    counters.scattered_entries += fetch.to.size();
  }
  if (fetch.to.empty()) {
    const bool is_wait = in.action == Action::kWait;
    const std::size_t place = is_wait ? in.dst.base - kBaseSlots : plan_->slot_bases + index;
    bool in_place = false;
    const auto piece = fetch_to(to, place, exposure.bytes, &in_place);
    if (!piece.ok()) {
      fail(piece.status());
      return false;
    }
    fetch.to.assign(1, piece.value());
    fetch.start(in_place);
  }
  // Who gave up no longer keeps what it exposed.
  if (!fetch.is_under_way() && team_->endpoint().gave_up(peer) != 0) {
    fail_given_up(peer);
    return false;
  }
  fetch.process = pair.place().process;
  const auto filled = fill(pair, exposure, fetch);
  // A writer that is alive and whose memory cannot be read has given up.
  if (!filled.ok()) {
    fail_unreachable(peer, {Code::kPeerDead, std::string(filled.status().message())});
  }
  if (!filled.ok() || !filled.value()) return false;
  received->data = fetch.to.front().data;
  received->landed = fetch.in_place;
  fetch.to.clear();
  uses_[in.use].awaited = true;
  return release(in.use, number);
}

// Writers that wait to hear of releases may have nothing else to go on: they have been told, and do
// not depend on this process calling again. What is told covers earlier collectives, too.
bool Run::told_awaited() {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    if (!uses_[i].awaited) continue;
    const auto count = static_cast<std::uint64_t>(uses_[i].count);
    if (uses_[i].told < count) {
      if (!team_->oldest(collective_)) return false;
      tell(i, count);
    }
    if (team_->endpoint().peer(plan_->uses[i].peer).remote->owes()) return false;
  }
  return true;
}

}  // namespace carillon
