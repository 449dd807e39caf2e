// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/sender.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/log.h"

namespace carillon::multicast {
namespace {

// A network may stop passing multicasts on, for good or to some members: a switch that does not
// hear who is in a group forgets it. What goes to members alone still arrives.

// After so many asks in a row without an answer each member is asked alone, too.
constexpr std::uint64_t kAsksToAll = 8;
// Who lacks a packet that was repaired so many times by sending it to all gets it alone.
constexpr std::uint8_t kRepairsToAll = 2;
// With so many of so many packets unheard it is said. Of a tenth that is lost by chance a few are.
constexpr std::uint64_t kUnheard = 64, kUnheardOf = 256;

}  // namespace

Sender::Sender(const Config& config, Carrier& carrier)
    : config_(config),
      carrier_(carrier),
      datagram_bytes_(kHeadBytes + config.payload_bytes),
      slots_(config.window),
      memory_(config.window * datagram_bytes_),
      child_acks_(AckTree(config, config.member).children()) {
  wanted_.reserve(config.window);
}

bool Sender::post(std::span<const std::byte> message, wire::Operation& operation) {
  if (operation_ != nullptr) return false;
  operation.begin();
  ++counters_.messages;
  if (config_.members == 1) {
    operation.finish({});
    return true;
  }
  operation_ = &operation;
  message_ = message;
  offset_ = 0;
  return true;
}

// An ack may tell of packets that were never sent only if its sender is broken.
void Sender::on_ack(Member from, std::uint64_t sequence) {
  const std::uint32_t child = AckTree(config_, config_.member).child(from);
  if (child >= child_acks_.size() || sequence > next_) return;
  child_acks_[child] = std::max(child_acks_[child], sequence);
  count_acks();
}

// An ack, of what it and who tells through it have.
bool Sender::awaits(Member member) const {
  const std::uint32_t child = AckTree(config_, config_.member).child(member);
  return child < child_acks_.size() && child_acks_[child] < next_;
}

void Sender::on_left(Member member) {
  const std::uint32_t child = AckTree(config_, config_.member).child(member);
  if (child >= child_acks_.size()) return;
  child_acks_[child] = kAllAcknowledged;
  count_acks();
}

void Sender::count_acks() {
  const std::uint64_t least =
      std::min(next_, *std::min_element(child_acks_.begin(), child_acks_.end()));
  if (least == acknowledged_) return;
  for (std::uint64_t i = acknowledged_; i < least; ++i) slot(i).asked = false;
  std::erase_if(wanted_, [&](std::uint64_t wanted) { return wanted < least; });
  acknowledged_ = least;
  fresh_ = true;
}

void Sender::on_nack(Member from, std::span<const Range> ranges, Nanoseconds now) {
  for (const Range& range : ranges) {
    const std::uint64_t end = std::min(range.first + range.count, next_);
    for (std::uint64_t i = std::max(range.first, acknowledged_); i < end; ++i) want(i, from, now);
  }
}

void Sender::want(std::uint64_t sequence, Member from, Nanoseconds now) {
  Slot& one = slot(sequence);
  const bool alone = one.to_all >= kRepairsToAll;
  // Who answers the first ask of it alone was there all the time; others were late.
  if (alone || asked_ == kAsksToAll + 1) note_unheard(from);
  if (one.asked) {
    one.several = one.several || one.asker != from;
    return;
  }
  const auto lately = [&](Nanoseconds time) {
    return time != 0 && now - time < config_.timing.holdoff;
  };
  // It is under way to all.
  if (lately(one.group_time)) return;
  const bool other = one.asker != from;
  if (lately(one.member_time) && !other) return;
  one.several = lately(one.member_time) && !alone;
  one.asker = from;
  if (alone) {
    (void)repair(sequence, now);  // which it asks for again if there is no room
    return;
  }
  one.asked = true;
  // With two members there is nobody else to wait for.
  one.repair_due = now + (config_.members > 2 ? config_.timing.gather : 0);
  wanted_.push_back(sequence);
}

void Sender::note_unheard(Member by) {
  if (warned_) return;
  if (counters_.packets - unheard_since_ > kUnheardOf) {
    unheard_since_ = counters_.packets;
    unheard_ = 0;
  }
  if (++unheard_ < kUnheard) return;
  warned_ = true;
  log(LogLevel::kWarning,
      "multicast: much of what member " + std::to_string(config_.member) +
          " sends to all does not reach member " + std::to_string(by) + " (" +
          carrier_.limits().name +
          "), and goes to it alone, late; does the network still pass multicasts on?");
}

void Sender::progress(Nanoseconds now) {
  send_repairs(now);
  if (operation_ != nullptr) send_new(now);
  ask_at(now);
}

void Sender::send_repairs(Nanoseconds now) {
  bool room = true;
  std::erase_if(wanted_, [&](std::uint64_t sequence) {
    if (!room || slot(sequence).repair_due > now) return false;
    room = repair(sequence, now);
    return room;
  });
}

// False: the carrier has no room.
bool Sender::repair(std::uint64_t sequence, Nanoseconds now) {
  Slot& one = slot(sequence);
  const std::span<const std::byte> packet = room(sequence).first(one.bytes);
  const bool sent =
      one.several ? carrier_.send_group(packet) : carrier_.send_member(one.asker, packet);
  if (!sent) return false;
  one.asked = false;
  (one.several ? one.group_time : one.member_time) = now;
  if (one.several) ++one.to_all;
  ++(one.several ? counters_.group_repairs : counters_.repairs);
  return true;
}

void Sender::send_new(Nanoseconds now) {
  while (next_ - acknowledged_ < config_.window) {
    waits_ = false;
    if (!send_next(now)) return;
    if (operation_ == nullptr) return;
  }
  if (!waits_) ++counters_.window_full;
  waits_ = true;
}

bool Sender::send_next(Nanoseconds now) {
  const std::size_t bytes = std::min<std::size_t>(config_.payload_bytes, message_.size() - offset_);
  const Packet packet = {.kind = Kind::kData,
                         .from = config_.member,
                         .source = config_.member,
                         .sequence = next_,
                         .message = number_,
                         .message_bytes = message_.size(),
                         .offset = offset_,
                         .payload = message_.subspan(offset_, bytes)};
  const std::span<const std::byte> built = build(config_.key, packet, room(next_));
  if (!carrier_.send_group(built)) return false;
  slot(next_) = {.bytes = built.size(), .asker = config_.member};
  ++counters_.packets;
  ++next_;
  offset_ += bytes;
  fresh_ = true;
  ask_due_ = now + config_.timing.ask;
  if (offset_ < message_.size()) return true;
  ++number_;
  wire::Operation* const done = operation_;
  operation_ = nullptr;
  done->finish({});
  return true;
}

void Sender::ask_at(Nanoseconds now) {
  if (acknowledged_ == next_) {
    ask_due_ = kNever;
    return;
  }
  if (fresh_) {
    fresh_ = false;
    asked_ = 0;
    ask_interval_ = config_.timing.ask;
    ask_due_ = now + ask_interval_;
  }
  if (now < ask_due_) return;
  std::array<std::byte, kHeadBytes> memory;
  const Packet packet = {.kind = Kind::kAsk,
                         .from = config_.member,
                         .source = config_.member,
                         .sequence = next_,
                         .message = asked_};
  const std::span<const std::byte> bytes = build(config_.key, packet, memory);
  if (!carrier_.send_group(bytes)) return;
  if (asked_ >= kAsksToAll) ask_each(bytes);
  ++counters_.asks;
  ++asked_;
  ask_interval_ = std::min(2 * ask_interval_, config_.timing.ask_most);
  ask_due_ = now + ask_interval_;
}

// Alone. The first for whom there was no room is the first of the next time.
void Sender::ask_each(std::span<const std::byte> bytes) {
  const AckTree tree(config_, config_.member);
  for (std::uint32_t n = config_.members; n > 0;
       --n, ask_next_ = (ask_next_ + 1) % config_.members) {
    if (ask_next_ == config_.member || config_.share_place(ask_next_, config_.member)) continue;
    const bool has_all = tree.child(ask_next_) < child_acks_.size() && !awaits(ask_next_);
    if (!has_all && !carrier_.send_member(ask_next_, bytes)) return;
  }
}

Nanoseconds Sender::due() const {
  Nanoseconds due = ask_due_;
  for (const std::uint64_t sequence : wanted_) {
    due = std::min(due, slots_[sequence % config_.window].repair_due);
  }
  return due;
}

void Sender::fail(const Status& status) {
  if (operation_ != nullptr) operation_->finish(status);
  operation_ = nullptr;
  wanted_.clear();
  next_ = acknowledged_;
}

}  // namespace carillon::multicast
