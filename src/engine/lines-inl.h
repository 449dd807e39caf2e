// SPDX-License-Identifier: Apache-2.0
//
// How a run writes and finds messages in lines of the node's shared memory, whichever way it goes.
#pragma once

#include "base/pause_core.h"
#include "engine/run.h"
#include "engine/team.h"
#include "engine/wake.h"

namespace carillon {

inline bool line_is_free(shm::Endpoint& endpoint, const ChannelUse& channel, shm::Peer& peer,
                         std::uint64_t number) {
  return is_shared_out(channel.flow) ? endpoint.shared_line_free(audience_of(channel.flow), number)
                                     : endpoint.pair_line_free(peer, number);
}

// As wake_readers and the pool know them.
inline int reader_of(const ChannelUse& channel) {
  if (channel.flow == Flow::kOutDomain) return shm::Pool::kToDomain;
  return channel.flow == Flow::kOutAll ? shm::Pool::kToAll : channel.peer;
}

// The line's message is there: its header, which readers look for, is written last. Until they have
// released it the line is this collective's.
inline void Run::publish(const ChannelUse& channel, shm::Peer& peer, shm::Line& line,
                         std::uint64_t number, std::uint8_t kind) {
  shm::Endpoint& endpoint = team_->endpoint();
  // partner: the acquire load in comes() of each reader
  line.header.store(shm::make_header(static_cast<std::uint32_t>(number), endpoint.lag(collective_),
                                     kind, signature()),
                    std::memory_order_release);
  if (is_shared_out(channel.flow)) {
    endpoint.use_shared_line(audience_of(channel.flow), number, collective_);
  } else {
    shm::Endpoint::use_pair_line(peer, number, collective_);
  }
  wake_readers(*team_, reader_of(channel));
}

// Has the message come, or does it within so many polls? Then its header is there.
inline bool Run::comes(const shm::Line& line, const shm::Peer& peer, std::uint64_t number,
                       int polls, std::uint64_t* header, Patience& patience) {
  constexpr int kTightPolls = 64;  // before a pause goes between them
  const auto tag = static_cast<std::uint32_t>(number + 1);
  const bool waits = polls > 0 && peer.remote == nullptr;
  if (waits) patience.leave_alone();
  // partner: the release store in publish() of the peer, or in Pair::on_message
  *header = line.header.load(std::memory_order_acquire);
  if (shm::header_tag(*header) == tag) {
    if (waits) patience.note_there();
    return true;
  }
  if (!waits) return false;  // of the network, nothing comes unless it makes progress
  for (int i = 0; i < polls; ++i) {
    if (i >= kTightPolls) pause_core();
    *header = line.header.load(std::memory_order_acquire);
    if (shm::header_tag(*header) == tag) {
      patience.note_looks(i);
      return true;
    }
  }
  patience.note_none();
  return false;
}

// Is the message in the line itself, long enough, and of this call?
inline bool Run::suits(const Instruction& in, std::uint64_t header) const {
  const std::uint8_t kind = shm::header_kind(header);
  return kind <= shm::kInlineBytes && kind >= in.length &&
         shm::header_signature(header) == signature();
}

}  // namespace carillon
