// SPDX-License-Identifier: Apache-2.0
//
// The channels of the abstract machine: numbered messages, the window over the numbers, and the
// streams of send and recv. Part of machine.cc, which decides who runs; this only keeps the books.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "schedule/machine.h"

namespace carillon {

/// What a blocked strand waits for.
enum class Block : std::uint8_t { kNone, kMessage, kWindow, kLargeSlot, kTurn, kLeaders };

/// A message of any channel but queue.
struct Letter {
  bool present = false;   // put
  bool released = false;  // by every reader
  bool large = false;
  std::uint32_t put_op = 0;
  Payload payload = 0;
  std::int64_t length = 0;
  Rank readers_left = 0;
  std::vector<bool> waited;  // by which ranks (channel pair: one entry)
};

/// A message of channel queue, cut into fragments that pass through the window one by one.
struct Parcel {
  std::int64_t number = 0;
  std::uint32_t send_op = 0;
  Payload payload = 0;
  std::int64_t length = 0;
  std::int64_t fragments = 1;
  std::int64_t sent = 0;
  std::int64_t taken = 0;
};

/// One directed channel.
struct Link {
  Channel channel = Channel::kPair;
  Rank writer = 0;
  Rank reader = 0;             // -1: all others of the node or group
  std::int64_t first = 0;      // lowest number not released
  std::deque<Letter> letters;  // numbers first, first + 1, ...
  std::deque<Parcel> parcels;  // sent and not yet received, in order
  std::int64_t send_turn = 0;  // the send or multicast that may run, by number
  std::int64_t recv_turn = 0;
  std::int64_t in_flight = 0;        // fragments
  std::vector<std::size_t> blocked;  // strands to look at again when anything changes here
};

/// All links of a team, made when first used.
class Links {
 public:
  Links(Rank ranks, const Limits& limits) : ranks_(ranks), limits_(limits) {}

  /// Null if the directed pair is already used by the other kind of transfer (put or send).
  Link* find(Channel channel, Rank writer, Rank reader);
  /// The letter of that number, made if need be; the number must not be below link.first.
  Letter& letter(Link& link, std::int64_t number);
  /// Drops released letters from the front.
  static void advance(Link& link);
  /// Says which message nobody waited for; empty if all were.
  [[nodiscard]] std::string leftover() const;

 private:
  [[nodiscard]] std::uint64_t key(Channel channel, Rank writer, Rank reader) const;
  [[nodiscard]] bool reads(const Link& link, Rank rank) const;
  [[nodiscard]] std::string describe_leftover(const Link& link) const;

  Rank ranks_;
  const Limits& limits_;
  std::unordered_map<std::uint64_t, Link> links_;
};

}  // namespace carillon
