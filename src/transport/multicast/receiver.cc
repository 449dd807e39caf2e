// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/receiver.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace carillon::multicast {
namespace {

// Two askers tell the source that several members lack a packet: more need not ask.
constexpr std::uint8_t kEnoughAskers = 2;
constexpr std::uint8_t kMostTries = 16;
// Asked for more often, it is asked of the source alone, too: it may not hear what goes to all.
constexpr std::uint8_t kTriesToAll = 3;
// And if the source has gone on asking after so many of these, some 8 s, it never comes: short
// packets do, long ones do not fit any more. Half of all packets may get lost meanwhile.
constexpr int kBegsInVain = 64;

EarlyPackets::Entry entry_of(const Packet& packet) {
  return {.sequence = packet.sequence,
          .message = packet.message,
          .message_bytes = packet.message_bytes,
          .offset = packet.offset,
          .bytes = static_cast<std::uint32_t>(packet.payload.size())};
}

}  // namespace

Receiver::Receiver(const Config& config, Member source, EarlyPackets& early, Carrier& carrier)
    : config_(config),
      source_(source),
      early_(early),
      carrier_(carrier),
      tree_(config, source),
      random_(static_cast<std::minstd_rand::result_type>(config.seed * 31 + source + 1)),
      slots_(config.window),
      child_acks_(tree_.children()),
      confirmed_(config.places ? 0 : UINT64_MAX) {}

Nanoseconds Receiver::backoff() {
  const Timing& timing = config_.timing;
  return timing.nack_least + random_() % (timing.nack_most - timing.nack_least + 1);
}

bool Receiver::post(std::span<std::byte> to, Receiving& receiving, Nanoseconds now) {
  if (posted_count_ == kMaxPosted) return false;
  receiving.begin();
  receiving.arrived_bytes_ = 0;
  posted(posted_count_) = {.to = to, .receiving = &receiving};
  ++posted_count_;
  take_early();
  settle();
  // What was left to come again for want of room is wanted now.
  for (std::uint64_t i = next_; i < highest_; ++i) {
    Slot& one = slot(i);
    const bool put_off = one.due > now + config_.timing.nack_most;
    if (one.received || one.tries > 0 || !put_off) continue;
    one.due = now + backoff();
    nack_due_ = std::min(nack_due_, one.due);
  }
  return true;
}

bool Receiver::well_formed(const EarlyPackets::Entry& packet) const {
  const std::uint64_t bytes = packet.message_bytes;
  if (packet.offset >= bytes && (packet.offset != 0 || bytes != 0)) return false;
  if (packet.offset % config_.payload_bytes != 0) return false;
  if (packet.bytes != std::min<std::uint64_t>(config_.payload_bytes, bytes - packet.offset)) {
    return false;
  }
  return packet.sequence >= packet.offset / config_.payload_bytes &&
         packet.message >= first_message_;
}

// To where it is wanted, or among the early ones; not `taken` if there is no room. False: it
// contradicts others of its message.
bool Receiver::place(const EarlyPackets::Entry& packet, std::span<const std::byte> payload,
                     bool* taken) {
  *taken = true;
  if (packet.message - first_message_ >= posted_count_) {
    Slot& one = slot(packet.sequence);
    one.early = early_.keep(packet, payload);
    *taken = one.early != EarlyPackets::kNone;
    return true;
  }
  Posted& target = posted(packet.message - first_message_);
  const std::uint64_t first = packet.sequence - packet.offset / config_.payload_bytes;
  if (!target.known) {
    target.known = true;
    target.first_sequence = first;
    target.message_bytes = packet.message_bytes;
    if (packet.message_bytes > target.to.size()) {
      Receiving* const receiving = target.receiving;
      target.receiving = nullptr;
      receiving->finish({Code::kMismatch, "multicast: member " + std::to_string(source_) +
                                              " has sent " + std::to_string(packet.message_bytes) +
                                              " bytes to where " +
                                              std::to_string(target.to.size()) +
                                              " are expected; are the counts of all ranks equal?"});
    }
  } else if (target.first_sequence != first || target.message_bytes != packet.message_bytes) {
    return false;
  }
  if (target.receiving != nullptr && !payload.empty()) {
    std::memcpy(target.to.data() + packet.offset, payload.data(), payload.size());
  }
  return true;
}

bool Receiver::on_data(const Packet& packet, Nanoseconds now) {
  if (packet.sequence < next_) {
    ++counters_.duplicates;
    return true;
  }
  const EarlyPackets::Entry entry = entry_of(packet);
  if (packet.sequence - next_ >= config_.window || !well_formed(entry)) return false;
  seen_up_to(packet.sequence + 1, now);
  Slot& one = slot(packet.sequence);
  if (one.received) {
    ++counters_.duplicates;
    return true;
  }
  bool taken = false;
  if (!place(entry, packet.payload, &taken)) return false;
  if (packet.sequence == begged_for_) begged_in_vain_ = 0;
  if (!taken) {
    ++counters_.no_room;
    return true;
  }
  ++counters_.packets;
  one.received = true;
  if (packet.sequence == next_) {
    advance();
    settle();
  }
  return true;
}

bool Receiver::on_ask(const Packet& packet, Nanoseconds now) {
  const std::uint64_t end = packet.sequence;
  if (end < next_) return true;  // an old one
  if (end > next_ + config_.window) return false;
  seen_up_to(end, now);
  count_begging(packet);
  owes_ack_ = owes_ack_ || packet.message > 0;
  asked_ = std::max(asked_, end);
  return true;
}

// A source that asks makes progress, and so has answered, if it has sent that packet at all. A
// repeated packet tells nothing new. Of places, another member may have tried meanwhile.
void Receiver::count_begging(const Packet& ask) {
  const std::pair<std::uint64_t, std::uint64_t> number(ask.sequence, ask.message);
  if (!begged_ || ask.sequence <= next_ || number <= newest_ask_) return;
  newest_ask_ = number;
  begged_ = false;
  if (std::exchange(begged_for_, next_) != next_) begged_in_vain_ = 0;
  if (++begged_in_vain_ < kBegsInVain || !status_.ok()) return;
  const std::string source = "member " + std::to_string(source_);
  status_ = {Code::kSystem,
             "multicast: packet " + std::to_string(next_) + " of " + source +
                 " does not reach member " + std::to_string(config_.member) + " (" +
                 carrier_.limits().name + "), though it was asked for again and again, and short " +
                 "ones do; has the MTU of an interface been lowered? It must let datagrams of " +
                 std::to_string(kHeadBytes + config_.payload_bytes) +
                 " bytes through, as when the team was made (CARILLON_MULTICAST=off sends none)"};
}

// All up to `end` have been sent: what has not come is missing, or on its way.
void Receiver::seen_up_to(std::uint64_t end, Nanoseconds now) {
  if (end <= highest_) return;
  const Nanoseconds due = now + backoff();
  for (std::uint64_t i = highest_; i < end; ++i) slot(i) = {.due = due};
  highest_ = end;
  if (highest_ > next_) nack_due_ = std::min(nack_due_, due);
}

void Receiver::advance() {
  while (next_ < highest_ && slot(next_).received) {
    Slot& one = slot(next_);
    if (one.early != EarlyPackets::kNone) {
      (early_last_ == EarlyPackets::kNone ? early_first_ : early_.at(early_last_).next) = one.early;
      early_last_ = one.early;
      early_.at(one.early).next = EarlyPackets::kNone;
    }
    one = {};
    ++next_;
  }
  take_early();
}

// From the early ones to receives that are posted.
void Receiver::take_early() {
  while (early_first_ != EarlyPackets::kNone) {
    const std::uint32_t index = early_first_;
    const EarlyPackets::Entry& packet = early_.at(index);
    if (packet.message - first_message_ >= posted_count_) return;
    early_first_ = packet.next;
    if (early_first_ == EarlyPackets::kNone) early_last_ = EarlyPackets::kNone;
    bool taken = false;
    Posted& target = posted(packet.message - first_message_);
    if (!place(packet, early_.payload(index), &taken) && target.receiving != nullptr) {
      target.receiving->finish({Code::kInternal, "multicast: the packets of member " +
                                                     std::to_string(source_) +
                                                     " contradict each other"});
      target.receiving = nullptr;
    }
    early_.release(index);
    settle();
  }
}

// Ends the receives whose messages are there, and says how far the first of the others is.
void Receiver::settle() {
  while (posted_count_ > 0) {
    Posted& first = posted(0);
    // Early packets of it are still to be put where they belong.
    if (!first.known || next_ < first.first_sequence) return;
    std::uint64_t arrived = next_ - first.first_sequence;
    if (early_first_ != EarlyPackets::kNone && early_.at(early_first_).message == first_message_) {
      arrived = early_.at(early_first_).sequence - first.first_sequence;
    }
    const bool all = arrived >= config_.packets(first.message_bytes);
    if (first.receiving != nullptr) {
      first.receiving->arrived_bytes_ =
          all ? first.message_bytes
              : std::min(first.message_bytes, arrived * config_.payload_bytes);
    }
    if (!all) return;
    if (first.receiving != nullptr) first.receiving->finish({}, first.message_bytes);
    ++counters_.messages;
    first_posted_ = (first_posted_ + 1) % kMaxPosted;
    --posted_count_;
    ++first_message_;
  }
}

void Receiver::on_others_nack(std::span<const Range> ranges) {
  for (const Range& range : ranges) {
    const std::uint64_t end = std::min(range.first + range.count, highest_);
    for (std::uint64_t i = std::max(range.first, next_); i < end; ++i) {
      Slot& one = slot(i);
      if (!one.received && one.heard < kEnoughAskers) ++one.heard;
    }
  }
}

void Receiver::on_ack(Member from, std::uint64_t sequence) {
  const std::uint32_t child = tree_.child(from);
  if (child >= child_acks_.size()) return;
  child_acks_[child] = std::max(child_acks_[child], sequence);
}

bool Receiver::awaits(Member member) const {
  if (settled()) return false;
  const std::uint32_t child = tree_.child(member);
  return member == source_ || (child < child_acks_.size() && child_acks_[child] < highest_);
}

void Receiver::on_left(Member member) {
  if (member == source_) source_left_ = true;
  const std::uint32_t child = tree_.child(member);
  if (child < child_acks_.size()) child_acks_[child] = kAllAcknowledged;
}

void Receiver::progress(Nanoseconds now) {
  if (now >= nack_due_) send_nacks(now);
  send_ack();
}

// Whether a missing packet is asked for now; when it is due next.
bool Receiver::asks_for(Slot& one, bool wanted, Nanoseconds now) {
  const bool suppressed = one.heard >= kEnoughAskers;
  const Timing& timing = config_.timing;
  const Nanoseconds wait =
      std::min(timing.retry << std::min<int>(one.tries, 10), timing.retry_most);
  one.due = now + wait + random_() % (wait / 2 + 1);
  one.heard = 0;
  if (suppressed) {
    ++counters_.suppressed;
    return false;
  }
  if (!wanted) return false;
  if (one.tries < kMostTries) ++one.tries;
  return true;
}

void Receiver::send_nacks(Nanoseconds now) {
  // What could only be thrown away is not asked for.
  const bool wanted = posted_count_ > 0 || !early_.full();
  std::array<Range, kMaxRanges> ranges;
  std::size_t count = 0;
  bool to_source = config_.places != nullptr;
  nack_due_ = kNever;
  for (std::uint64_t i = next_; i < highest_; ++i) {
    Slot& one = slot(i);
    if (one.received) continue;
    const bool follows = count > 0 && ranges[count - 1].first + ranges[count - 1].count == i;
    const bool room = follows || count < kMaxRanges;
    if (one.due <= now && room && asks_for(one, wanted, now)) {
      if (!follows) ranges[count++] = {.first = i};
      ++ranges[count - 1].count;
      to_source = to_source || one.tries > kTriesToAll;
    }
    nack_due_ = std::min(nack_due_, one.due);
  }
  if (count == 0) return;
  const Packet packet = {.kind = Kind::kNack,
                         .from = config_.member,
                         .source = source_,
                         .payload = std::as_bytes(std::span(ranges).first(count))};
  std::array<std::byte, kMinDatagramBytes> memory;
  const std::span<const std::byte> bytes = build(config_.key, packet, memory);
  // One that finds no room is as good as lost. A source of places may hear nothing but what is sent
  // to it alone.
  bool sent = config_.places == nullptr && carrier_.send_group(bytes);
  const bool sent_alone = to_source && carrier_.send_member(source_, bytes);
  if (sent || sent_alone) ++counters_.nacks;
  begged_ = begged_ || (sent_alone && ranges[0].first == next_ && slot(next_).tries > kTriesToAll);
}

void Receiver::send_ack() {
  std::uint64_t least = std::min(next_, confirmed_);
  for (const std::uint64_t child : child_acks_) least = std::min(least, child);
  const std::uint64_t step = config_.ack_step();
  const bool due = least / step > told_ / step || (least >= asked_ && told_ < asked_);
  if (!due && !(owes_ack_ && least > 0)) {
    owes_ack_ = false;
    return;
  }
  const Packet packet = {
      .kind = Kind::kAck, .from = config_.member, .source = source_, .sequence = least};
  std::array<std::byte, kHeadBytes> memory;
  if (!carrier_.send_member(tree_.parent(), build(config_.key, packet, memory))) return;
  ++counters_.acks;
  told_ = least;
  owes_ack_ = false;
}

void Receiver::resume(std::uint64_t sequence, std::uint64_t message) {
  for (Slot& one : slots_) {
    if (one.early != EarlyPackets::kNone) early_.release(one.early);
    one = {};
  }
  while (early_first_ != EarlyPackets::kNone) {
    const std::uint32_t next = early_.at(early_first_).next;
    early_.release(early_first_);
    early_first_ = next;
  }
  early_last_ = EarlyPackets::kNone;
  posted_count_ = 0;
  next_ = highest_ = confirmed_ = sequence;
  first_message_ = message;
  nack_due_ = kNever;
  // The member that had it before may not have come to that.
  told_ = asked_ = 0;
  owes_ack_ = true;
}

void Receiver::expect(std::uint64_t packets, Nanoseconds now) {
  seen_up_to(next_ + std::min<std::uint64_t>(packets, config_.window), now);
}

void Receiver::fail(const Status& status) {
  for (std::size_t i = 0; i < posted_count_; ++i) {
    if (posted(i).receiving != nullptr) posted(i).receiving->finish(status);
  }
  posted_count_ = 0;
  nack_due_ = kNever;
}

}  // namespace carillon::multicast
