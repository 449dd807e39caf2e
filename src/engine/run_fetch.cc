// SPDX-License-Identifier: Apache-2.0
//
// Long messages between nodes that nobody copies: a put whose bytes keep their value tells where
// they are, and the wait gets them from there, if possible to where the schedule copies them
// anyway. The writer's run ends when its readers have them.
#include <cstring>
#include <string>

#include "base/log.h"
#include "engine/engine.h"
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
                                              std::int64_t offset, std::int64_t length) {
  Engine& engine = team_->engine();
  if (!in.lasts || length < engine.fetch_from_bytes()) return std::nullopt;
  if (in.a.base >= kBaseSlots && landed_[in.a.base - kBaseSlots] == 0) return std::nullopt;
  const std::span bytes(at(in.a, strand) + offset, static_cast<std::size_t>(length));
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

// Gets the message that `received` tells of. False: not there yet, or failed.
bool Run::fetch(const Instruction& in, const Strand& strand, std::uint64_t number,
                const Landing& to, Received* received) {
  const int peer = plan_->uses[in.use].peer;
  net::Pair& pair = *team_->endpoint().peer(peer).remote;
  const auto index = static_cast<std::size_t>(&strand - strands_.data());
  net::Fetch& fetch = fetches().of_strand(index);
  net::Exposure exposure;
  std::memcpy(&exposure, received->exposure, sizeof exposure);
  if (fetch.to.bytes == 0) {
    const bool is_wait = in.action == Action::kWait;
    const std::size_t place = is_wait ? in.dst.base - kBaseSlots : plan_->slot_bases + index;
    const auto piece = fetch_to(to, place, exposure.bytes, &fetch.in_place);
    if (!piece.ok()) {
      fail(piece.status());
      return false;
    }
    fetch.to = piece.value();
    fetch.posted = false;
  }
  if (!fetch.posted) {
    const auto posted = pair.get(exposure.at, fetch.to, fetch.operation);
    if (!posted.ok()) fail_unreachable(peer, posted.status());
    fetch.posted = posted.ok() && posted.value();
  }
  if (!fetch.posted || !fetch.operation.done()) return false;
  if (!fetch.operation.status().ok()) {
    fail_unreachable(peer, fetch.operation.status());
    return false;
  }
  received->data = fetch.to.data;
  received->landed = fetch.in_place;
  fetch.to.bytes = 0;
  uses_[in.use].awaited = true;
  release(in.use, number);
  return true;
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
