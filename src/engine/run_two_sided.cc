// SPDX-License-Identifier: Apache-2.0
//
// The ops send and recv: streams of messages. On a node they are written and read like those of
// put, and so they are between nodes, unless the schedule is one of two-sided transfers: then they
// are sent and received, as a two-sided library would, copied into a registered buffer, received
// into another one, copied out; or placed (run_placed.cc).
#include <algorithm>
#include <string>

#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

template <typename Clock>
bool Run::send(const Instruction& in, Strand& strand, Clock& clock) {
  const std::int64_t total = length_of(in.a, in.length);
  const std::int64_t messages = messages_of(in.a.table, total);
  if (strand.stream == 0) strand.lends = false;
  while (strand.stream < messages) {
    const std::int64_t offset = strand.stream * plan_->stream_bytes;
    const std::int64_t length = std::min(plan_->stream_bytes, total - offset);
    const std::uint64_t number =
        uses_[in.use].first + static_cast<std::uint64_t>(in.index + strand.stream);
    if (!write_message(in, strand, {number, offset, length}, clock)) return false;
    ++strand.stream;
  }
  strand.stream = 0;
  return true;
}

template <typename Clock>
bool Run::recv(const Instruction& in, Strand& strand, int polls, Clock& clock) {
  const std::int64_t total = length_of(in.dst, in.length);
  const std::int64_t messages = messages_of(in.dst.table, total);
  const ChannelUse& channel = plan_->uses[in.use];
  net::Pair* const pair = plan_->two_sided ? team_->endpoint().peer(channel.peer).remote : nullptr;
  while (strand.stream < messages) {
    const std::int64_t offset = strand.stream * plan_->stream_bytes;
    const std::int64_t length = std::min(plan_->stream_bytes, total - offset);
    const std::uint64_t number =
        uses_[in.use].first + static_cast<std::uint64_t>(in.index + strand.stream);
    if (pair != nullptr && !pair->show(number)) {
      fail_unreachable(channel.peer, pair->status());
      return false;
    }
    Received received;
    if (!poll(in.use, number, polls, &received)) return false;
    if (received.length != length) {
      fail(Status(Code::kMismatch, "rank " + std::to_string(channel.peer) + " sent " +
                                       std::to_string(received.length) + " bytes to rank " +
                                       std::to_string(team_->rank()) + ", which expected " +
                                       std::to_string(length) +
                                       "; do the counts of sender and receiver agree?"));
      return false;
    }
    if (received.handed.bytes != 0) note_handed(in.use, number, received.handed);
    if (received.exposure != nullptr || received.lent != 0) {
      Landing landing{.bytes = {}, .extent = {}, .part = {number, offset, length}};
      if (in.piece_count == 0) {
        std::byte* const whole = at(in.dst, strand);
        landing.bytes = {whole + offset, static_cast<std::size_t>(length)};
        landing.extent = extent_of({whole, static_cast<std::size_t>(total)}, in.dst, strand);
      }
      const bool there = received.lent != 0 ? read_lent(in, strand, number, landing, &received)
                                            : fetch(in, strand, number, landing, &received);
      if (!there) return false;
    }
    if (received.announcement != nullptr &&
        !receive_placed(in, strand, {number, offset, length}, &received)) {
      return false;
    }
    clock.charge(Work::kWait);
    if (!received.landed) {
      scatter(received.data, received.arrival, in, strand, offset, length);
      copied_bytes_ += static_cast<std::uint64_t>(length);
      clock.charge(Work::kUnpack);
    }
    if (pair != nullptr) pair->free_received(number);
    if (!release(in.use, number)) return false;
    clock.charge(Work::kPost);
    ++strand.stream;
  }
  strand.stream = 0;
  strand.read_ahead = 0;
  if (is_fetching(strand)) {
    fail_other_messages(channel.peer);
    return false;
  }
  return true;
}

template bool Run::send(const Instruction&, Strand&, NoClock&);
template bool Run::send(const Instruction&, Strand&, LapClock&);
template bool Run::recv(const Instruction&, Strand&, int, NoClock&);
template bool Run::recv(const Instruction&, Strand&, int, LapClock&);

}  // namespace carillon
