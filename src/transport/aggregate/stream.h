// SPDX-License-Identifier: Apache-2.0
//
// A host's end of a group of switches (docs/switch-protocol.md): the window, sending again, and
// what is kept until all have it. No socket, no clock and no thread: datagrams and the time are
// given to it. Nothing is allocated after it is made, unless it fails.
//
//   post -> packets, as the window opens -> switch -> results, in any order -> done
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "switch/protocol/packet.h"

namespace carillon::aggregate {

/// The end of a time when a host waits for a switch, and how long that may be.
struct StreamTimes {
  std::int64_t first_retry_ns = 20'000'000;  ///< until round trips have been measured
  std::int64_t least_retry_ns = 5'000'000;
  std::int64_t most_retry_ns = 500'000'000;
  /// A switch that leaves kQuestions questions, each asked an equal part of this after the one
  /// before, without an answer is dead.
  std::int64_t give_up_ns = 5'000'000'000;
  static constexpr std::uint32_t kQuestions = 8;
  std::int64_t keep_ns = 10'000'000'000;  ///< after which a switch hears from a host that is idle
};

struct StreamConfig {
  std::uint32_t job = 0;
  std::uint32_t group = 0;
  SipKey key;
  std::uint16_t child = 0;  ///< this host's port at its switch
  std::uint16_t window = 0;
  std::uint16_t operand_bytes = 0;  ///< as the group was built
  std::vector<Endpoint> path;       ///< its switch, the one above, ..., the root
  StreamTimes times;
};

/// One call. The memory is the caller's until it is done.
struct Operation {
  Op op = {};
  Type type = {};
  const std::byte* input = nullptr;  ///< nullptr: nothing to add, only the result is wanted
  std::byte* output = nullptr;       ///< may be input; nullptr: the result is not wanted
  std::uint64_t count = 0;           ///< the same on all hosts, as op and type
};

/// A packet that somebody may not have the result of.
struct Held {
  Header header;                       ///< as it was sent
  std::span<const std::byte> operand;  ///< empty: there was none
  std::optional<std::span<const std::byte>> result;
};

class Stream {
 public:
  using Ticket = std::uint64_t;

  explicit Stream(const StreamConfig& config);

  /// Nothing if as many are in flight as there may be: make progress and try again.
  std::optional<Ticket> post(const Operation& operation);
  [[nodiscard]] bool done(Ticket ticket) const;
  /// Not ok: the switch will not do, no posted operation that is not done ever will be.
  [[nodiscard]] const Status& status() const { return status_; }

  /// Sends what may be sent, and again what should have been answered.
  void progress(std::int64_t now_ns, Output& output);
  /// Whether the datagram was of this group and from one of its switches.
  bool take(const Endpoint& from, std::span<const std::byte> datagram, std::int64_t now_ns);
  /// After progress(): when it has something to do if nothing comes before; nothing: not at all.
  [[nodiscard]] std::optional<std::int64_t> due_ns() const;

  /// Ends what is in flight with an error, until go_on().
  void stop(const Status& why) { status_ = why; }
  /// The first sequence that has no result here. While stopped it stays.
  [[nodiscard]] std::uint32_t first_unanswered() const { return first_; }
  /// After an end: sends all from `first` on, which is held, once more; from now on slot i belongs
  /// to owners[i % owners.size()], of which this host is number `child`, and which are nobody's to
  /// give up. What was answered is not written to the caller's memory again.
  void go_on(std::span<const Endpoint> owners, std::uint16_t child, std::uint32_t first,
             std::int64_t now_ns, Output& output);

  /// The next sequence; the last 2 * window before it are held.
  [[nodiscard]] std::uint32_t next_sequence() const { return next_; }
  [[nodiscard]] std::optional<Held> held(std::uint32_t sequence) const;

  struct Counts {
    std::uint64_t packets = 0;
    std::uint64_t again = 0;  ///< of these, sent before
    std::uint64_t results = 0;
    std::uint64_t ignored = 0;  ///< datagrams that say nothing new, or nothing at all
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  static constexpr std::size_t kOperations = 64;

  struct Record {
    enum class State : std::uint8_t { kFree, kSent, kAnswered };
    State state = State::kFree;
    std::uint8_t tries = 0;
    std::uint8_t passed = 0;  // later packets that were answered since it was sent
    std::uint32_t sequence = 0;
    std::size_t packet_bytes = 0;
    std::size_t result_bytes = 0;
    std::int64_t sent_ns = 0;
    Ticket ticket = 0;
    std::byte* output = nullptr;
    bool settled = false;  // it was answered before the end
  };
  struct Posted {
    Operation operation;
    std::uint64_t sent = 0;        // elements
    std::uint32_t unsent = 0;      // packets
    std::uint32_t unanswered = 0;  // packets
  };
  struct Switch {
    Endpoint at;
    std::int64_t heard_ns = 0;
    std::int64_t asked_ns = 0;
    std::uint32_t unanswered = 0;  // questions, since it was heard or waiting began
  };

  [[nodiscard]] Record& record(std::uint32_t sequence) { return ring_[sequence % ring_.size()]; }
  [[nodiscard]] std::span<std::byte> packet_of(std::uint32_t sequence) const;
  [[nodiscard]] std::byte* result_of(std::uint32_t sequence) const;
  [[nodiscard]] const Endpoint& owner(std::uint32_t sequence) const {
    return path_[owned_ ? sequence % ring_.size() % path_.size() : 0].at;
  }
  [[nodiscard]] bool may_send() const;
  void send_next(std::int64_t now_ns, Output& output);
  void send_again(Record& record, std::int64_t now_ns, Output& output);
  void send_again_what_is_due(std::int64_t now_ns, Output& output);
  void look_after_switches(std::int64_t now_ns, Output& output);
  void ask(Switch& one, std::int64_t now_ns, Output& output);
  [[nodiscard]] bool waits() const { return first_ != next_; }
  [[nodiscard]] std::int64_t due_ns(const Switch& one) const;
  bool take_result(const Packet& packet, std::int64_t now_ns);
  bool take_refusal(const Header& header, std::span<const std::byte> datagram);
  void measure(std::int64_t round_trip_ns);
  void notice_passed(std::uint32_t sequence, std::int64_t sent_ns);
  [[nodiscard]] std::int64_t retry_ns(const Record& record) const;
  [[nodiscard]] std::int64_t due_ns(const Record& record) const;

  StreamConfig config_;
  std::vector<Switch> path_;
  bool owned_ = false;                   // by slots: path_ are hosts
  std::vector<Record> ring_;             // a packet's is its sequence's, modulo
  std::unique_ptr<std::byte[]> memory_;  // per record: packet, result
  std::array<Posted, kOperations> posted_{};
  Ticket next_ticket_ = 0;
  Ticket sending_ = 0;       // the first that has packets to send
  std::uint32_t next_ = 0;   // sequence
  std::uint32_t first_ = 0;  // sequence of the first packet that is not answered
  std::uint32_t asked_ = 0;  // requests for a sign of life
  std::int64_t waiting_since_ns_ = 0;
  std::int64_t news_ns_ = 0;       // when the last result came
  std::int64_t probed_ns_ = 0;     // when packets were last sent again though nothing had come
  std::uint8_t probe_rounds_ = 0;  // such times in succession: 1, 2, 4, ... packets
  std::int64_t smooth_ns_ = 0, deviation_ns_ = 0;  // of round trips; 0: none measured
  Status status_;
  Counts counts_;
};

}  // namespace carillon::aggregate
