// SPDX-License-Identifier: Apache-2.0
//
// The channels of the abstract machine: numbered messages, the window over the numbers, and the
// streams of send and recv. Part of machine.cc, which decides who runs; this only keeps the books.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/stamped_map.h"
#include "schedule/fifo.h"
#include "schedule/machine.h"

namespace carillon {

/// What a blocked strand waits for.
enum class Block : std::uint8_t { kNone, kMessage, kWindow, kLargeSlot, kTurn, kLeaders };

/// A message of any channel but queue.
struct Letter {
  bool present = false;   // put
  bool released = false;  // by every reader
  bool large = false;
  std::size_t writer = 0;  // the strand that put it
  std::uint32_t put_op = 0;
  Payload payload = 0;
  std::int64_t length = 0;
  Rank readers_left = 0;
  bool waited = false;          // by the reader, where there is one
  std::vector<bool> waited_by;  // by which ranks, where there are several readers
};

/// A message of channel queue, cut into fragments that pass through the window one by one.
struct Parcel {
  std::int64_t number = 0;
  std::size_t writer = 0;  // the strand that sends it
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
  Fifo<Letter> letters;        // numbers first, first + 1, ...
  Fifo<Parcel> parcels;        // sent and not yet received, in order
  std::int64_t send_turn = 0;  // the send or multicast that may run, by number
  std::int64_t recv_turn = 0;
  std::int64_t in_flight = 0;        // fragments
  std::vector<std::size_t> blocked;  // strands to look at again when anything changes here

  /// One that nothing has been sent on, in the memory that is there.
  void begin(Channel of, Rank from, Rank to) {
    letters.clear();
    parcels.clear();
    blocked.clear();
    *this = {.channel = of,
             .writer = from,
             .reader = to,
             .letters = std::move(letters),
             .parcels = std::move(parcels),
             .blocked = std::move(blocked)};
  }
};

/// All links of a team, made when first used.
class Links {
 public:
  /// Of another team, or the same one: nothing has been sent. In the memory that is there.
  void begin(Rank ranks, const Limits& limits);
  /// Null if the directed pair is already used by the other kind of transfer (put or send).
  Link* find(Channel channel, Rank writer, Rank reader);
  /// The letter of that number, made if need be; the number must not be below link.first.
  Letter& letter(Link& link, std::int64_t number);
  /// Notes that the rank, a reader of the link, has waited for the letter; false if it had before.
  static bool take(const Link& link, Letter& letter, Rank rank);
  /// Whether it has.
  [[nodiscard]] static bool taken(const Link& link, const Letter& letter, Rank rank) {
    return has_readers(link.channel) ? letter.waited_by[static_cast<std::size_t>(rank)]
                                     : letter.waited;
  }
  /// The link's first letter if it has been released; null if not.
  static const Letter* first_released(const Link& link);
  static void drop_first(Link& link);
  /// Says which message nobody waited for, or was left out; empty if there is none.
  [[nodiscard]] std::string leftover() const;

 private:
  [[nodiscard]] std::int64_t key(Channel channel, Rank writer, Rank reader) const;
  [[nodiscard]] std::string describe_leftover(const Link& link) const;

  Rank ranks_ = 0;
  const Limits* limits_ = nullptr;
  std::deque<Link> links_;  // stay where they are; those in use come first
  std::size_t used_ = 0;
  StampedMap<std::uint32_t> places_;  // by key: in links_, from 1 on
};

}  // namespace carillon
