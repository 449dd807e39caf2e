// SPDX-License-Identifier: Apache-2.0
//
// What a node receives of multicasts to nodes: one of its processes at a time, the owner, takes
// them in, into a ring in shared memory that all of them read. Who comes first becomes the owner,
// and whoever finds it idle for a while takes over from it: nobody waits for a process that is
// late.
//
//   +-------+-----------+--------------------------+--------------------+------------------+
//   | owner | published | released and asked, of   | positions, of each | ring of messages |
//   |       |           | each process             | source; lengths    |                  |
//   +-------+-----------+--------------------------+--------------------+------------------+
//   published   messages 0 .. published - 1 are in the ring, as far as it reaches back
//   released    messages that the process has read: a place of the ring is written again when all
//               processes have read what is there
//   asked       messages that the process has begun to wait for: an owner that has not come to the
//               one that others wait for is away
//
// Messages are numbered in the order of the node's calls, whoever sent them. Ring, positions and
// `published` are written by who holds the owner's lock only; it is held while packets are taken
// in, never from one call of progress() to the next, so that a process that computes can be taken
// over from at any time. What a new owner has not heard it asks for: the sources keep all that the
// node has not published. protocol/reception.pml under tests is the model of this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "engine/multicast_streams.h"
#include "transport/shm/layout.h"

namespace carillon {

/// Where a node's reception stands, and whose this one is.
struct ReceptionPlace {
  std::byte* memory = nullptr;  ///< in the segment, the same for all of the node
  std::size_t members = 0;      ///< of the team
  std::size_t processes = 0;    ///< of it on this node
  std::size_t own = 0;          ///< which of these this one is
};

class Reception {
 public:
  /// An owner that has not taken anything in for so long can be taken over from: longer than it
  /// takes to come to the next call, or, where processes share cores, to get one again. Where the
  /// owner is away, the shorter time does there, too, at first. Who has taken over too soon, as the
  /// owner came before the message did, waits twice as long the next time, so that processes that
  /// come first in turn do not go on doing so; who was right, the shorter time again.
  static constexpr multicast::Nanoseconds kPatience = 200 * multicast::kMicrosecond;
  static constexpr multicast::Nanoseconds kPatienceCrowded = 4 * multicast::kMillisecond;
  /// Who loses what it had of a message to another that takes over waits twice as long, too, up to
  /// this: else processes that look in turn only, each for a short time, would take it from each
  /// other for ever. Half as long after each message that it publishes.
  static constexpr multicast::Nanoseconds kPatienceMost = 256 * multicast::kMillisecond;
  /// At least Limits::window. How far others get ahead of a rank that is late: 2 MiB.
  static constexpr std::uint64_t kRing = 32;
  static constexpr std::size_t kMessageBytes = 65536;

  /// Of the memory of a team of so many members; the first `head_bytes` of it must be 0 at first.
  static std::size_t bytes(std::size_t members) {
    return head_bytes(members) + kRing * kMessageBytes;
  }
  static std::size_t head_bytes(std::size_t members);

  using Clock = multicast::Nanoseconds (*)();
  Reception(const ReceptionPlace& place, GroupStreams& streams, multicast::Nanoseconds patience,
            Clock clock)
      : place_(place),
        streams_(streams),
        clock_(clock),
        patience_(patience),
        patience_come_(patience),
        patience_away_(kPatience) {}

  /// Numbers for messages that a collective will read.
  std::uint64_t take(std::uint64_t count) { return std::exchange(taken_, taken_ + count); }
  /// The bytes of message `number`, which `writer` sends; null: not yet, or not its turn. To be
  /// asked again until they are there, and then released.
  Result<const std::byte*> message(Rank writer, std::uint64_t number, std::size_t bytes);
  void release(std::uint64_t number);

  /// Moves the group on, and what this process receives for the node.
  Status progress(multicast::Nanoseconds now, bool arrived = true);
  /// Stands back if another process has become the owner.
  void look();
  /// Whether something was published since it was asked last.
  bool take_news() { return std::exchange(news_, false); }
  /// How often this process has become the owner after another.
  [[nodiscard]] std::uint64_t takeovers() const { return takeovers_; }
  /// How long this process waits for an owner that is away, if ranks share cores.
  [[nodiscard]] multicast::Nanoseconds patience_away() const { return patience_away_; }

 private:
  struct Head;
  [[nodiscard]] Head& head() const;
  [[nodiscard]] shm::Counter& released(std::size_t process) const;
  [[nodiscard]] shm::Counter& asked(std::size_t process) const;
  [[nodiscard]] multicast::Group::Position& position(std::size_t source) const;
  [[nodiscard]] std::byte* slot(std::uint64_t number) const;
  [[nodiscard]] bool has_room(std::uint64_t number) const;

  Status begin(Rank writer, std::uint64_t number, std::size_t bytes, multicast::Nanoseconds now);
  bool lock(std::uint64_t number, multicast::Nanoseconds now);
  bool lock_own();
  void unlock();
  Status take_over();
  Status publish();
  void learn(std::uint64_t number);

  ReceptionPlace place_;
  GroupStreams& streams_;
  Clock clock_;
  multicast::Nanoseconds patience_;  // with an owner at the least
  multicast::Nanoseconds patience_come_, patience_away_;
  std::uint64_t away_ = 0;  // the word of the owner that was away as this process took over
  std::uint64_t taken_ = 0, next_ = 0, asked_ = 0;
  // Ownership as this process last saw or left it.
  std::uint64_t own_word_ = 0;  // 0: it is not the owner
  std::uint64_t seen_word_ = 0;
  multicast::Nanoseconds seen_since_ = 0;
  bool in_step_ = true;  // its group has taken in what the place has: no other has been the owner
  bool stood_back_ = false;
  // What it receives for the node: message number published.
  bool receives_ = false;
  Rank writer_ = 0;
  std::unique_ptr<multicast::Receiving> receiving_;
  bool news_ = false;
  std::uint64_t takeovers_ = 0;
};

}  // namespace carillon
