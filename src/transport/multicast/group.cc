// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/group.h"

#include <algorithm>
#include <utility>

namespace carillon::multicast {

Group::Group(const Config& config, std::unique_ptr<Carrier> carrier)
    : config_(config),
      carrier_(std::move(carrier)),
      early_(config.early_packets, config.payload_bytes),
      sender_(config, *carrier_),
      receivers_(config.members),
      gone_(config.members),
      left_(config.members) {}

Group::~Group() { fail({Code::kInternal, "multicast: the group is gone"}); }

Receiver& Group::receiver(Member source) {
  std::unique_ptr<Receiver>& one = receivers_[source];
  if (one == nullptr) {
    one = std::make_unique<Receiver>(config_, source, early_, *carrier_);
    active_.push_back(one.get());
    for (Member member = 0; member < config_.members; ++member) {
      if (gone_[member] && place_left(member)) one->on_left(member);
    }
  }
  return *one;
}

Result<bool> Group::post(std::span<const std::byte> message, wire::Operation& operation) {
  if (!broken_.ok()) return broken_;
  if (!sender_.post(message, operation)) return false;
  sender_.progress(now_);
  return true;
}

Result<bool> Group::receive(Member source, std::span<std::byte> to, Receiving& receiving) {
  if (source >= config_.members || source == config_.member) {
    return Status(Code::kInvalidArgument, "multicast: there is no other member " +
                                              std::to_string(source) + " of a group of " +
                                              std::to_string(config_.members));
  }
  if (!broken_.ok()) return broken_;
  return receiver(source).post(to, receiving, now_);
}

void Group::on_packet(std::span<const std::byte> bytes) {
  const std::optional<Packet> packet = parse(config_.key, config_.members, bytes);
  if (!packet) {
    ++counters_.foreign;
    return;
  }
  // The network may give this member's own multicasts back to it.
  if (packet->from == config_.member) return;
  ++heard_;
  if (!dispatch(*packet)) ++counters_.contradictory;
}

bool Group::dispatch(const Packet& packet) {
  const bool comes_in = packet.kind == Kind::kData || packet.kind == Kind::kAsk;
  if (comes_in && (!takes_in_ || config_.share_place(packet.source, config_.member))) return true;
  switch (packet.kind) {
    case Kind::kData: return receiver(packet.source).on_data(packet, now_);
    case Kind::kAsk: return receiver(packet.source).on_ask(packet, now_);
    case Kind::kNack: return on_nack(packet);
    case Kind::kAck:
      if (packet.source == config_.member) {
        sender_.on_ack(packet.from, packet.sequence);
      } else {
        receiver(packet.source).on_ack(packet.from, packet.sequence);
      }
      return true;
    case Kind::kProbe: return true;
  }
  return false;
}

bool Group::on_nack(const Packet& packet) {
  const auto ranges = parse_ranges(packet.payload);
  if (!ranges) return false;
  if (packet.source == config_.member) {
    sender_.on_nack(packet.from, *ranges, now_);
  } else {
    receiver(packet.source).on_others_nack(*ranges);
  }
  return true;
}

Status Group::progress(Nanoseconds now, bool arrived) {
  if (!broken_.ok()) return broken_;
  now_ = now;
  if (arrived || !carrier_->tells_at_any_time()) {
    if (Status status = carrier_->receive(*this); !status.ok()) {
      fail(status);
      return status;
    }
  }
  sender_.progress(now);
  if (!takes_in_) return {};
  for (Receiver* const one : active_) {
    one->progress(now);
    if (!one->status().ok()) fail(one->status());
  }
  return broken_;
}

Status Group::take_over(std::span<const Position> positions) {
  for (Member source = 0; source < config_.members; ++source) {
    const Position& position = positions[source];
    if (receivers_[source] == nullptr && position.sequence == 0) continue;
    receiver(source).resume(position.sequence, position.message);
  }
  takes_in_ = true;
  return carrier_->attach(true);
}

void Group::stand_back() {
  takes_in_ = false;
  for (Receiver* const one : active_) one->resume(0, 0);
  (void)carrier_->attach(false);  // or packets come that are thrown away
}

Nanoseconds Group::due() const {
  Nanoseconds due = sender_.due();
  if (!takes_in_) return due;
  for (const Receiver* const one : active_) due = std::min(due, one->due());
  return due;
}

bool Group::settled() const {
  if (!takes_in_) return idle();
  return idle() && std::all_of(active_.begin(), active_.end(),
                               [](const Receiver* one) { return one->settled(); });
}

// Of places, all the members there: any of them may be the one that acknowledges.
bool Group::place_left(Member member) const {
  for (Member other = 0; other < config_.members; ++other) {
    const bool counts = other == member || config_.share_place(other, member);
    if (counts && !gone_[other]) return false;
  }
  return true;
}

bool Group::awaits(Member member) const {
  if (gone_[member]) return false;
  return sender_.awaits(member) ||
         (takes_in_ && std::any_of(active_.begin(), active_.end(),
                                   [&](const Receiver* one) { return one->awaits(member); }));
}

void Group::member_left(Member member) {
  if (gone_[member]) return;
  gone_[member] = true;
  if (!place_left(member)) return;
  sender_.on_left(member);
  for (Receiver* const one : active_) one->on_left(member);
}

void Group::member_dead(Member member) {
  // What has arrived counts.
  if (broken_.ok()) (void)carrier_->receive(*this);
  fail({Code::kPeerDead, "multicast: member " + std::to_string(member) + " has ended"});
}

void Group::fail(const Status& status) {
  if (broken_.ok()) broken_ = status;
  sender_.fail(broken_);
  for (Receiver* const one : active_) one->fail(broken_);
}

// Who comes to the allgather has been acknowledged by all: when everybody has come, nobody lacks
// anything.
Result<bool> Group::leave(const crl_oob_t& oob, Nanoseconds now) {
  if (Status status = progress(now); !status.ok()) return status;
  if (!leaving_) {
    if (!sender_.idle()) return false;
    if (oob.allgather_post(oob.arg, &nothing_, left_.data(), 1, &leave_request_) != 0) {
      return Status(Code::kSystem, "multicast: the caller's allgather could not be started");
    }
    leaving_ = true;
  }
  const int answer = oob.allgather_test(oob.arg, leave_request_);
  if (answer == 0 || answer == 1) return answer == 0;
  return Status(Code::kSystem, "multicast: the caller's allgather failed");
}

GroupCounters Group::counters() const {
  GroupCounters sum = counters_;
  sum.sent = sender_.counters();
  for (const Receiver* const one : active_) {
    const Receiver::Counters& part = one->counters();
    sum.received.packets += part.packets;
    sum.received.messages += part.messages;
    sum.received.duplicates += part.duplicates;
    sum.received.no_room += part.no_room;
    sum.received.nacks += part.nacks;
    sum.received.suppressed += part.suppressed;
    sum.received.acks += part.acks;
  }
  return sum;
}

}  // namespace carillon::multicast
