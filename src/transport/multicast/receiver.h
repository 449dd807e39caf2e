// SPDX-License-Identifier: Apache-2.0
//
// The receiving side of one source's stream: puts packets in order and where they are wanted, asks
// for what is missing, and tells up the tree what it and all below it have. It reads no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transport/multicast/carrier.h"
#include "transport/multicast/config.h"
#include "transport/multicast/early.h"
#include "transport/wire.h"

namespace carillon::multicast {

/// A receive under way.
class Receiving : public wire::Operation {
 public:
  /// So many bytes, from the first on, are there already: they may be passed on.
  [[nodiscard]] std::size_t arrived_bytes() const { return arrived_bytes_; }

 private:
  friend class Receiver;
  std::size_t arrived_bytes_ = 0;
};

/// Receives of one source that may be posted at a time.
inline constexpr std::size_t kMaxPosted = 16;

class Receiver {
 public:
  Receiver(const Config& config, Member source, EarlyPackets& early, Carrier& carrier);

  /// The source's next message. False: kMaxPosted are under way.
  bool post(std::span<std::byte> to, Receiving& receiving, Nanoseconds now);
  /// False: the packet is wrong, though it has the right key.
  bool on_data(const Packet& packet, Nanoseconds now);
  bool on_ask(const Packet& packet, Nanoseconds now);
  /// Another member lacks these.
  void on_others_nack(std::span<const Range> ranges);
  void on_ack(Member from, std::uint64_t sequence);
  [[nodiscard]] bool awaits(Member member) const;
  /// It has ended in order: with all that it, and who told through it, needed.
  void on_left(Member member);
  void progress(Nanoseconds now);
  /// An error: what the source sends does not come, however often it is asked for.
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] Nanoseconds due() const { return nack_due_; }
  /// All that the source has sent, as far as is known here, has come, here and at those below, and
  /// the parent has been told.
  [[nodiscard]] bool settled() const { return source_left_ || told_ == highest_; }
  void fail(const Status& status);

  // Of places: here another member may have taken in what came last.

  /// All before this is kept at the place: only that much is acknowledged.
  void confirm(std::uint64_t sequence) { confirmed_ = sequence; }
  /// Begins anew with this packet, the first of that message; what was posted is forgotten.
  void resume(std::uint64_t sequence, std::uint64_t message);
  /// So many packets may have been sent, and passed by.
  void expect(std::uint64_t packets, Nanoseconds now);

  struct Counters {
    std::uint64_t packets = 0, messages = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t no_room = 0;  ///< came early, and were left to come again
    std::uint64_t nacks = 0, suppressed = 0;
    std::uint64_t acks = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  // One packet at or above next_.
  struct Slot {
    bool received = false;
    std::uint8_t tries = 0;  // how often it was asked for
    std::uint8_t heard = 0;  // how many others asked for it since
    std::uint32_t early = EarlyPackets::kNone;
    Nanoseconds due = 0;  // when to ask for it
  };
  struct Posted {
    std::span<std::byte> to;
    Receiving* receiving = nullptr;  // null: it had too little room, its message is thrown away
    bool known = false;              // some packet of it has come
    std::uint64_t first_sequence = 0;
    std::uint64_t message_bytes = 0;
  };

  [[nodiscard]] Slot& slot(std::uint64_t sequence) { return slots_[sequence % config_.window]; }
  [[nodiscard]] Posted& posted(std::size_t i) { return posted_[(first_posted_ + i) % kMaxPosted]; }
  [[nodiscard]] bool well_formed(const EarlyPackets::Entry& packet) const;
  bool place(const EarlyPackets::Entry& packet, std::span<const std::byte> payload, bool* taken);
  void take_early();
  void advance();
  void settle();
  void seen_up_to(std::uint64_t end, Nanoseconds now);
  void send_nacks(Nanoseconds now);
  bool asks_for(Slot& one, bool wanted, Nanoseconds now);
  void send_ack();
  void count_begging(const Packet& ask);
  Nanoseconds backoff();

  Config config_;
  Member source_;
  EarlyPackets& early_;
  Carrier& carrier_;
  AckTree tree_;
  std::minstd_rand random_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> child_acks_;
  std::uint64_t next_ = 0;     // all below have come
  std::uint64_t highest_ = 0;  // the source has sent all below
  Nanoseconds nack_due_ = kNever;
  // Acks.
  std::uint64_t told_ = 0;   // to the parent
  std::uint64_t asked_ = 0;  // the source wants to know when all below have come
  bool owes_ack_ = false;    // it asks again: an ack was lost, or somebody is late
  bool source_left_ = false;
  std::uint64_t confirmed_;
  // What was asked of the source alone, and did not come though the source has gone on asking.
  bool begged_ = false;
  std::uint64_t begged_for_ = UINT64_MAX;
  int begged_in_vain_ = 0;
  std::pair<std::uint64_t, std::uint64_t> newest_ask_;
  Status status_;
  // Posted receives, and packets below next_ whose receives are not posted yet.
  std::array<Posted, kMaxPosted> posted_;
  std::size_t first_posted_ = 0, posted_count_ = 0;
  std::uint64_t first_message_ = 0;  // the number of the first posted, or of the next to be
  std::uint32_t early_first_ = EarlyPackets::kNone, early_last_ = EarlyPackets::kNone;
  Counters counters_;
};

}  // namespace carillon::multicast
