// SPDX-License-Identifier: Apache-2.0
//
// One rank's channels of one team in shared memory: who may write which line when.
//
// The credit protocol. Messages of a channel are numbered; message n lives in line n % kWindow.
// Its line may be written once message n - kWindow has been written (several collectives in flight
// write out of turn) and every reader has released it. The writer knows that from (cheapest first)
//   1. what readers told it in passing: every header carries the writer's `done`, so a message
//      received from a peer says which collectives the peer has completed;
//   2. the reader's `done` counter: a collective completed has released all its messages;
//   3. the reader's ack counter of the channel, kept only by collectives that put more messages
//      on it than it has lines, or send more than half as many, whose chunks are wanted sooner, or
//      whose own end waits for others to read (references).
//      Only a reader's oldest collective tells it: it covers the earlier ones' messages.
// A window is per team and channel, so that no team can starve another; the numbers are assigned
// when a collective starts, so that its place in the window is its own whatever runs beside it.
// protocol/credit.pml and area.pml under tests are the models of this file.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transport/shm/control.h"
#include "transport/shm/layout.h"
#include "transport/shm/segment.h"

namespace carillon::net {
class Pair;
}

namespace carillon::shm {

/// Where a member's team area and pair lines are, as told at team creation.
struct Member {
  std::int32_t node_rank = 0;  ///< -1: on another node (net::Pair fills in what its Peer needs)
  AreaPlace area;
  std::uint64_t generation = 0;
  bool in_domain = true;  ///< in the NUMA domain of this rank, if on this node
};

/// What was last written to each line of a channel: numbers' lower halves tell apart all that may
/// be meant, and peers are many.
class LineUses {
 public:
  /// As if the messages before number 0 had been written and released.
  LineUses() {
    for (std::uint32_t line = 0; line < kWindow; ++line) numbers_[line] = line - kWindow;
  }
  [[nodiscard]] bool last_is(std::uint64_t number) const {
    return numbers_[number % kWindow] == static_cast<std::uint32_t>(number);
  }
  /// The collective that wrote the message in its line.
  [[nodiscard]] std::uint64_t collective(std::uint64_t number) const {
    return collectives_[number % kWindow];
  }
  void set(std::uint64_t number, std::uint64_t collective) {
    numbers_[number % kWindow] = static_cast<std::uint32_t>(number);
    collectives_[number % kWindow] = collective;
  }

 private:
  std::uint32_t numbers_[kWindow];
  std::uint64_t collectives_[kWindow] = {};
};

/// A value for each Audience.
template <typename T>
struct PerAudience {
  std::array<T, kAudiences> values = {};
  T& operator[](Audience audience) { return values[static_cast<std::size_t>(audience)]; }
  const T& operator[](Audience audience) const {
    return values[static_cast<std::size_t>(audience)];
  }
};

/// One other member of the team (or this rank itself), as seen from here. Lines and counters
/// point into shared memory, or, of a member on another node, into its net::Pair.
struct Peer {
  Line* out_lines = nullptr;       ///< this rank's pair messages to the peer; in the peer's part
  const Line* in_lines = nullptr;  ///< the peer's to this rank; in this rank's part
  PerAudience<const Line*> shared_lines;  ///< the peer's messages to several
  std::uint64_t known_done = 0;           ///< collectives of the team it is known to have completed
  LineUses out_used;                      ///< of the out lines
  std::uint64_t out_next = 0;             ///< numbers for collectives yet to start
  std::uint64_t in_next = 0;
  PerAudience<std::uint64_t> shared_in_next;
  const Progress* progress = nullptr;
  std::uint64_t generation = 0;
  const Acks* out_acks = nullptr;  ///< the peer's counts of this rank's messages
  Acks* in_acks = nullptr;         ///< this rank's counts, for the peer to read
  std::int32_t node_rank = 0;
  bool in_domain = true;
  net::Pair* remote = nullptr;  ///< null: on this node
};

class Endpoint {
 public:
  /// Areas are laid out for so many members on this node; there may be fewer. Without domains
  /// nothing is written to, or read from, Audience::kDomain.
  Endpoint(Segment& segment, const std::vector<Member>& members, int rank,
           const AreaLayout& layout);
  /// Makes a new area, all zero, this rank's; before any other member is told of it.
  static void open_area(Segment& segment, std::uint64_t offset, std::uint64_t generation);
  /// So tells who has that area, and never comes to have an endpoint there, that it has given up.
  static void give_up_area(Segment& segment, std::uint64_t offset, int error);

  [[nodiscard]] int size() const { return static_cast<int>(peers_.size()); }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Line* shared_lines(Audience audience) { return shared_[audience].lines; }
  /// Of the next message to them, for collectives yet to start.
  [[nodiscard]] std::uint64_t& next_shared_number(Audience audience) {
    return shared_[audience].next;
  }

  /// Collectives completed here, all earlier ones included.
  [[nodiscard]] std::uint64_t done() const { return done_; }
  void set_done(std::uint64_t done) {
    done_ = done;
    mine_->done.store(generation_ << kDoneBits | done, std::memory_order_release);
  }
  /// This rank will touch nothing of the team any more; `error` (1..15) is for the others to read.
  void give_up(int error);
  /// What other nodes are told of `done`.
  [[nodiscard]] std::uint64_t done_word() const { return generation_ << kDoneBits | done_; }
  /// The error with which the member gave up, or 0.
  [[nodiscard]] int gave_up(int rank) { return error_in(completed_by(rank)); }
  /// For who must tell of one moment both whether a member gave up and what it has completed.
  [[nodiscard]] static int error_in(std::uint64_t completed) {
    return completed >= kGaveUp ? static_cast<int>(kDoneMask - completed) : 0;
  }

  /// For ranks that have waited for long: tells what for, and whether the member waits in another
  /// call than this as the same collective of the team.
  void tell_call(std::uint64_t collective, std::uint16_t signature) {
    mine_->call.store(collective << 16 | signature, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t call_word() const {
    return mine_->call.load(std::memory_order_relaxed);
  }
  /// Has the member said that it waits in this collective, too?
  [[nodiscard]] bool waits_in(int rank, std::uint64_t collective) {
    return peer(rank).progress->call.load(std::memory_order_relaxed) >> 16 == collective;
  }
  [[nodiscard]] bool call_differs(int rank, std::uint64_t collective, std::uint16_t signature) {
    const std::uint64_t call = peer(rank).progress->call.load(std::memory_order_relaxed);
    return call >> 16 == collective && (call & 0xFFFF) != signature;
  }

  /// May the line of message `number` be written? The collective that then writes it says so.
  bool pair_line_free(Peer& to, std::uint64_t number) {
    const std::uint64_t last = number - kWindow;
    const std::uint64_t collective = to.out_used.collective(last);
    return to.out_used.last_is(last) &&
           (collective <= to.known_done || pair_released(to, last, collective));
  }
  static void use_pair_line(Peer& to, std::uint64_t number, std::uint64_t collective) {
    to.out_used.set(number, collective);
  }
  bool shared_line_free(Audience audience, std::uint64_t number) {
    const Shared& shared = shared_[audience];
    const std::uint64_t last = number - kWindow;
    const std::uint64_t collective = shared.used.collective(last);
    return shared.used.last_is(last) &&
           (collective <= shared.known_done || shared_released(audience, last, collective));
  }
  void use_shared_line(Audience audience, std::uint64_t number, std::uint64_t collective) {
    shared_[audience].used.set(number, collective);
  }

  /// Has the peer released this pair message of that collective?
  bool pair_released(Peer& to, std::uint64_t number, std::uint64_t collective);
  /// Has every reader released this message to several?
  bool shared_released(Audience audience, std::uint64_t number, std::uint64_t collective);

  /// What a header of collective `collective` says of the peer's `done`.
  static void note_lag(Peer& from, std::uint64_t header, std::uint64_t collective) {
    const std::uint32_t lag = header_lag(header);
    if (lag == 255 || lag > collective) return;
    const std::uint64_t done = collective - lag;
    if (done > from.known_done) from.known_done = done;
  }
  [[nodiscard]] std::uint32_t lag(std::uint64_t collective) const {
    const std::uint64_t lag = collective - done_;
    return lag < 255 ? static_cast<std::uint32_t>(lag) : 255;
  }

  /// How many collectives of the team the member has completed.
  std::uint64_t completed_by(int rank) {
    refresh_done(peer(rank));
    return peer(rank).known_done;
  }
  /// True once every member on this node has completed `collectives` collectives on the team, so
  /// that nobody will touch this rank's area again.
  bool everybody_done(std::uint64_t collectives);

 private:
  void refresh_done(Peer& peer);

  // This rank's messages to several.
  struct Shared {
    Line* lines = nullptr;
    std::uint64_t next = 0;  // numbers for collectives yet to start
    LineUses used;
    std::uint64_t known_done = 0;  // the least of the readers' known_done
  };

  std::vector<Peer> peers_;
  int rank_;
  Progress* mine_ = nullptr;
  std::uint64_t generation_ = 0;
  std::uint64_t done_ = 0;
  PerAudience<Shared> shared_;
};

}  // namespace carillon::shm
