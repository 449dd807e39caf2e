// SPDX-License-Identifier: Apache-2.0
//
// The ops multicast and receive: a message goes from where it stands into what the group's sender
// keeps, and comes straight to where it is wanted, unless those are lists, or it comes by way of
// the node's memory.
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

// Whether it is done.
bool Run::settle(const Result<bool>& moved) {
  if (moved.ok()) return moved.value();
  fail(team_->about_groups(moved.status(), collective_));
  return false;
}

bool Run::multicast(const Instruction& in, const Strand& strand) {
  GroupStreams& group = team_->streams(plan_->uses[in.use].flow);
  const std::uint64_t number = number_of(in, strand);
  const auto bytes = static_cast<std::size_t>(in.length);
  const std::byte* data = nullptr;
  if (in.piece_count == 0) {
    if (bytes > 0) data = at(in.a, strand);
  } else {
    std::byte* const memory = group.out_memory(number, bytes);
    if (memory == nullptr) return false;
    // Again each time: nothing has changed it.
    gather(memory, in, strand, 0, in.length);
    data = memory;
  }
  return settle(group.send(number, {data, bytes}));
}

bool Run::receive(const Instruction& in, const Strand& strand) {
  const ChannelUse& channel = plan_->uses[in.use];
  if (channel.flow == Flow::kInNodes) return receive_from_node(in, strand);
  GroupStreams& group = team_->streams(channel.flow);
  const std::uint64_t number = number_of(in, strand);
  const auto bytes = static_cast<std::size_t>(in.length);
  if (in.piece_count == 0) {
    std::byte* const to = bytes > 0 ? at(in.dst, strand) : nullptr;
    return settle(group.receive(channel.peer, number, {to, bytes}));
  }
  std::byte* const memory = group.in_memory(channel.peer, number, bytes);
  if (memory == nullptr) return false;
  if (!settle(group.receive(channel.peer, number, {memory, bytes}))) return false;
  scatter(memory, Arrival(), in, strand, 0, in.length);
  return true;
}

bool Run::receive_from_node(const Instruction& in, const Strand& strand) {
  const std::uint64_t number = number_of(in, strand);
  const auto message = team_->reception().message(plan_->uses[in.use].peer, number,
                                                  static_cast<std::size_t>(in.length));
  if (!settle(message.ok() ? Result<bool>(message.value() != nullptr) : message.status())) {
    return false;
  }
  team_->tell_reception();
  scatter(message.value(), Arrival(), in, strand, 0, in.length);
  copied_bytes_ += static_cast<std::uint64_t>(in.length);
  team_->reception().release(number);
  return true;
}

}  // namespace carillon
