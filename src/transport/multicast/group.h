// SPDX-License-Identifier: Apache-2.0
//
// Reliable multicast among the members of a group: each may send messages to all others, and gets
// each other's messages in the order of their sending. setup.h makes groups that have been seen to
// work; docs/multicast.md says how the protocol goes.
//
// Nothing blocks, and nothing happens unless progress() is called: also what others lack of this
// member's messages is sent again only there. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "carillon/carillon.h"
#include "transport/multicast/carrier.h"
#include "transport/multicast/config.h"
#include "transport/multicast/early.h"
#include "transport/multicast/receiver.h"
#include "transport/multicast/sender.h"

namespace carillon::multicast {

/// What a member has done and seen since the group was made.
struct GroupCounters {
  Sender::Counters sent;
  Receiver::Counters received;      ///< of all sources together
  std::uint64_t foreign = 0;        ///< packets of others, or damaged, or not understood
  std::uint64_t contradictory = 0;  ///< with the right key, but wrong
};

class Group final : public CarrierListener {
 public:
  /// All members with the same Config, but for `member` and `seed`.
  Group(const Config& config, std::unique_ptr<Carrier> carrier);
  ~Group() override;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] const CarrierLimits& carrier() const { return carrier_->limits(); }

  // Posts. True: it is under way, or done already. False: no room now; progress, and try again. An
  // error: never again.

  /// To all other members. The operation is done when its memory is free, which is before the
  /// others have the message: nobody waits for the slowest, but for want of window.
  Result<bool> post(std::span<const std::byte> message, wire::Operation& operation);
  /// The next message of `source` that no receive was posted for. It may be shorter than `to`. Put
  /// there as its packets come: arrived_bytes() of them are there already, in order.
  Result<bool> receive(Member source, std::span<std::byte> to, Receiving& receiving);

  /// Moves everything on. An error means that the carrier is broken, or a member has ended.
  /// `arrived`: false if wait_descriptor() has been seen not to be readable.
  Status progress(Nanoseconds now, bool arrived = true);
  /// When progress() will have something to do even if nothing arrives.
  [[nodiscard]] Nanoseconds due() const;
  [[nodiscard]] int wait_descriptor() const { return carrier_->wait_descriptor(); }
  bool ready_to_wait() { return carrier_->ready_to_wait(); }

  // Of places (Config::places): the members of a place agree on one that takes in what comes, and
  // keep, for all to see, how far that has got. At first each does, and acknowledges nothing.

  /// From now on it is this one; `positions`, by source: what the place has.
  struct Position {
    std::uint64_t sequence = 0, message = 0;
  };
  Status take_over(std::span<const Position> positions);
  /// It is another one: receives that are under way are forgotten.
  void stand_back();
  /// The place has this much of the source's stream.
  void confirm(Member source, const Position& position) {
    receiver(source).confirm(position.sequence);
  }
  /// The source's next message, of so many bytes, may have been sent before take_over.
  void expect(Member source, std::uint64_t bytes) {
    receiver(source).expect(config_.packets(bytes), now_);
  }

  /// Everybody has all that this member has posted.
  [[nodiscard]] bool idle() const { return sender_.idle(); }
  /// That, and the others' sources know of what has come here and at those that tell through this
  /// member, unless the last acks were lost.
  [[nodiscard]] bool settled() const;
  /// settled() needs something of this member.
  [[nodiscard]] bool awaits(Member member) const;
  /// The caller has found out that this member has ended, in order: with what it needed, and
  /// without telling any more of what others need. Idempotent.
  void member_left(Member member);
  /// Of other members, so far.
  [[nodiscard]] std::uint64_t packets_heard() const { return heard_; }
  /// The caller has found out that this member has ended. What has not arrived yet never will:
  /// everything under way ends with kPeerDead.
  void member_dead(Member member);
  /// True when no member needs this one any more: then it may be destroyed. To be called again and
  /// again, by all members, when nothing is under way; it makes progress. One allgather of `oob` is
  /// used.
  Result<bool> leave(const crl_oob_t& oob, Nanoseconds now);

  [[nodiscard]] GroupCounters counters() const;

 private:
  void on_packet(std::span<const std::byte> bytes) override;
  bool dispatch(const Packet& packet);
  bool on_nack(const Packet& packet);
  Receiver& receiver(Member source);
  [[nodiscard]] bool place_left(Member member) const;
  void fail(const Status& status);

  Config config_;
  std::unique_ptr<Carrier> carrier_;
  EarlyPackets early_;
  Sender sender_;
  std::vector<std::unique_ptr<Receiver>> receivers_;  // by source; made on first use
  std::vector<Receiver*> active_;
  std::vector<bool> gone_;  // by member: it has left
  bool takes_in_ = true;
  Nanoseconds now_ = 0;  // of the latest progress
  std::uint64_t heard_ = 0;
  Status broken_;
  // Of leave().
  bool leaving_ = false;
  char nothing_ = 0;
  std::vector<char> left_;
  void* leave_request_ = nullptr;
  GroupCounters counters_;
};

}  // namespace carillon::multicast
