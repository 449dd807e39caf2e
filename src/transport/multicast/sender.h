// SPDX-License-Identifier: Apache-2.0
//
// The source's side of its stream: cuts messages into packets, keeps them until all members have
// acknowledged them, and repairs what somebody lacks. It reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "transport/multicast/carrier.h"
#include "transport/multicast/config.h"
#include "transport/wire.h"

namespace carillon::multicast {

class Sender {
 public:
  Sender(const Config& config, Carrier& carrier);

  /// False: a message is still being sent. The operation is done when all of the message is in the
  /// window: its memory is free then.
  bool post(std::span<const std::byte> message, wire::Operation& operation);
  void on_ack(Member from, std::uint64_t sequence);
  [[nodiscard]] bool awaits(Member member) const;
  /// It has ended in order: with all that it, and who told through it, needed.
  void on_left(Member member);
  void on_nack(Member from, std::span<const Range> ranges, Nanoseconds now);
  void progress(Nanoseconds now);
  /// When progress() has something to do though nothing arrives.
  [[nodiscard]] Nanoseconds due() const;
  /// Everybody has all that was posted.
  [[nodiscard]] bool idle() const { return operation_ == nullptr && acknowledged_ == next_; }
  void fail(const Status& status);

  struct Counters {
    std::uint64_t packets = 0, messages = 0;
    std::uint64_t repairs = 0, group_repairs = 0;  ///< to one member; to all
    std::uint64_t asks = 0;
    std::uint64_t window_full = 0;  ///< times that a message had to wait for the slowest member
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  // One packet of the window.
  struct Slot {
    std::size_t bytes = 0;
    bool asked = false;    // a repair is to be sent
    bool several = false;  // by more than one member
    Member asker = 0;
    std::uint8_t to_all = 0;  // repairs that were sent to all
    Nanoseconds repair_due = 0;
    Nanoseconds group_time = 0;   // when it was last sent to all
    Nanoseconds member_time = 0;  // and to `asker` alone
  };
  [[nodiscard]] Slot& slot(std::uint64_t sequence) { return slots_[sequence % config_.window]; }
  [[nodiscard]] std::span<std::byte> room(std::uint64_t sequence) {
    return std::span(memory_).subspan(sequence % config_.window * datagram_bytes_, datagram_bytes_);
  }
  void send_new(Nanoseconds now);
  bool send_next(Nanoseconds now);
  void send_repairs(Nanoseconds now);
  bool repair(std::uint64_t sequence, Nanoseconds now);
  void ask_at(Nanoseconds now);
  void ask_each(std::span<const std::byte> bytes);
  void count_acks();
  void want(std::uint64_t sequence, Member from, Nanoseconds now);
  void note_unheard(Member by);

  Config config_;
  Carrier& carrier_;
  std::size_t datagram_bytes_;
  std::vector<Slot> slots_;
  std::vector<std::byte> memory_;          // the window's packets, as they are sent
  std::vector<std::uint64_t> child_acks_;  // of the ack tree
  std::vector<std::uint64_t> wanted_;      // sequences of slots that are asked for
  std::uint64_t next_ = 0;                 // the next packet's sequence
  std::uint64_t acknowledged_ = 0;         // all members have all packets below
  // The message that is being sent.
  wire::Operation* operation_ = nullptr;
  std::span<const std::byte> message_;
  std::uint64_t offset_ = 0;
  std::uint64_t number_ = 0;
  bool waits_ = false;  // for the window
  // Asks.
  Nanoseconds ask_interval_ = 0;
  Nanoseconds ask_due_ = kNever;
  std::uint64_t asked_ = 0;  // how often since anything was acknowledged
  Member ask_next_ = 0;      // the first to be asked alone
  bool fresh_ = false;       // something was sent or acknowledged since the last ask
  // Packets that somebody lacked though they had gone to all again and again, of those since.
  std::uint64_t unheard_ = 0, unheard_since_ = 0;
  bool warned_ = false;
  Counters counters_;
};

}  // namespace carillon::multicast
