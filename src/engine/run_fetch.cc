// SPDX-License-Identifier: Apache-2.0
//
// Long messages between nodes that nobody copies: a put whose bytes keep their value tells where
// they are, and the wait gets them from there, if possible to where the schedule copies them
// anyway, and a recv to the places of its list, as far as the network takes lists. A recv of
// several messages gets them all, one get behind the other, from when the first one tells where
// they are. The writer's run ends when its readers have them.
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

// Where the message's bytes may stay until they have been read, if they may. All messages of a send
// go one way, so that its reader may get them with the first one.
std::optional<net::Exposure> Run::exposure_of(const Instruction& in, Strand& strand,
                                              const Part& part) {
  Engine& engine = team_->engine();
  const bool is_first = in.action != Action::kSend || part.offset == 0;
  if (is_first) strand.lends = lasts(in) && part.length >= engine.fetch_from_bytes();
  if (!strand.lends) return std::nullopt;
  const std::uint64_t behind = bytes_behind(in, part);
  const std::span bytes(at(in.a, strand) + part.offset, static_cast<std::size_t>(part.length));
  const std::span whole(at(in.a, strand),
                        static_cast<std::size_t>(part.offset) + bytes.size() + behind);
  const auto where = fetches().regions().expose(bytes, extent_of(whole, in.a, strand));
  if (where.ok()) return net::Exposure{where.value(), bytes.size(), behind};
  engine.stop_fetching(where.status());
  strand.lends = false;
  return std::nullopt;
}

// How many of the bytes that are said to stand behind a message go behind it here.
std::uint64_t Run::taken_with(const Instruction& in, const Landing& to,
                              std::uint64_t behind) const {
  if (in.action != Action::kRecv || to.bytes.empty()) return 0;
  const std::int64_t room = length_of(in.dst, in.length) - to.part.offset - to.part.length;
  return std::min(behind, static_cast<std::uint64_t>(room));
}

// The caller's memory if the network can write there, with what comes behind the message, else some
// of its own.
bool Run::begin_fetch(const Instruction& in, const Strand& strand, const Landing& to,
                      const net::Exposure& exposure, net::Fetch& fetch) {
  if (in.action == Action::kRecv && in.piece_count > 0 && list_of(in, strand, to.part, fetch.to)) {
    fetch.start(exposure.at, true);
    net::Counters& counters = team_->engine().network()->counters();
    ++counters.scattered;
    counters.scattered_entries += fetch.to.size();
    return true;
  }
  const std::size_t index = index_of(strand);
  Result<wire::Piece> piece = Status(Code::kUnsupported, "it lands nowhere");
  if (to.bytes.size() == exposure.bytes) {
    const std::uint64_t behind = taken_with(in, to, exposure.behind);
    piece = fetches().regions().find({to.bytes.data(), to.bytes.size() + behind}, to.extent);
  }
  const bool in_place = piece.ok();
  if (!in_place) {
    const bool is_wait = in.action == Action::kWait;
    const std::size_t place = is_wait ? in.dst.base - kBaseSlots : plan_->slot_bases + index;
    piece = fetches().landing(place, exposure.bytes);
  }
  if (!piece.ok()) {
    fail(piece.status());
    return false;
  }
  fetch.divide(piece.value(), team_->engine().network()->wire().capabilities().max_bytes);
  fetch.start(exposure.at, in_place);
  return true;
}

// Posts what comes next, if `more`, as long as there is room, and takes the ends of what has been
// posted. False: not so many bytes have landed yet.
Result<bool> Run::fill(net::Pair& pair, net::Fetch& fetch, std::uint64_t bytes, bool more) {
  const wire::Capabilities& device = team_->engine().network()->wire().capabilities();
  const auto most = std::min({device.max_pieces, device.max_get_pieces,
                              static_cast<std::size_t>(team_->limits().gather_entries)});
  for (;;) {
    while (more && fetch.may_post()) {
      const auto next = fetch.next(most, device.max_bytes);
      const auto posted = pair.get(fetch.next_from(), next, fetch.next_operation());
      if (!posted.ok()) return posted;
      if (!posted.value()) break;
      fetch.posted(next);
    }
    if (fetch.landed() >= bytes) return true;
    if (!fetch.is_under_way() || !fetch.oldest().done()) return false;
    if (!fetch.oldest().status().ok()) return fetch.oldest().status();
    fetch.take_oldest();
  }
}

// Gets the message that `received` tells of. False: not there yet, or failed.
bool Run::fetch(const Instruction& in, const Strand& strand, std::uint64_t number,
                const Landing& to, Received* received) {
  const int peer = plan_->uses[in.use].peer;
  net::Pair& pair = *team_->endpoint().peer(peer).remote;
  net::Fetch& fetch = fetches().of_strand(index_of(strand));
  net::Exposure exposure;
  std::memcpy(&exposure, received->exposure, sizeof exposure);
  if (fetch.to.empty() && !begin_fetch(in, strand, to, exposure, fetch)) return false;
  if (fetch.taken + exposure.bytes > fetch.total()) {
    fail_other_messages(peer);
    return false;
  }
  // Who gave up no longer keeps what it exposed.
  const bool gave_up = team_->endpoint().gave_up(peer) != 0;
  if (gave_up && !fetch.is_under_way()) {
    fail_given_up(peer);
    return false;
  }
  fetch.process = pair.place().process;
  const auto filled = fill(pair, fetch, fetch.taken + exposure.bytes, !gave_up);
  // A writer that is alive and whose memory cannot be read has given up.
  if (!filled.ok()) {
    fail_unreachable(peer, {Code::kPeerDead, std::string(filled.status().message())});
  }
  if (!filled.ok() || !filled.value()) return false;
  fetch.taken += exposure.bytes;
  received->landed = fetch.in_place;
  received->data = to.bytes.empty() || !fetch.in_place ? fetch.to.front().data : to.bytes.data();
  if (fetch.taken == fetch.total()) fetch.stop();
  uses_[in.use].awaited = true;
  return release(in.use, number);
}

// A send's messages are all got, or none.
bool Run::is_fetching(const Strand& strand) const {
  return fetches_ && !fetches_->of_strand(index_of(strand)).to.empty();
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
