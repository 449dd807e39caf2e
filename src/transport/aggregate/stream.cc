// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/stream.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "transport/aggregate/text.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint8_t kPassedMeansLost = 3;
constexpr std::uint8_t kMostDoublings = 6;

std::uint32_t packets_of(const Operation& operation, std::size_t elements) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, (operation.count + elements - 1) / elements));
}

}  // namespace

Stream::Stream(const StreamConfig& config)
    : config_(config),
      ring_(slots_of(config.window)),
      // Not touched before it is used: most teams have few packets in flight.
      memory_(std::make_unique_for_overwrite<std::byte[]>(
          ring_.size() * (kHeaderBytes + 2 * config.operand_bytes))) {
  for (const Endpoint& at : config.path) path_.push_back({.at = at});
}

std::span<std::byte> Stream::packet_of(std::uint32_t sequence) const {
  const std::size_t bytes = kHeaderBytes + config_.operand_bytes;
  return {memory_.get() + sequence % ring_.size() * bytes, bytes};
}

std::byte* Stream::result_of(std::uint32_t sequence) const {
  const std::size_t packets = ring_.size() * (kHeaderBytes + config_.operand_bytes);
  return memory_.get() + packets + sequence % ring_.size() * config_.operand_bytes;
}

std::optional<Stream::Ticket> Stream::post(const Operation& operation) {
  Posted& posted = posted_[next_ticket_ % kOperations];
  if (posted.unanswered > 0) return {};
  const std::uint32_t packets =
      packets_of(operation, config_.operand_bytes / type_bytes(operation.type));
  posted = {.operation = operation, .sent = 0, .unsent = packets, .unanswered = packets};
  return next_ticket_++;
}

bool Stream::done(Ticket ticket) const {
  if (ticket >= next_ticket_) return false;
  // A place is used again when it is done.
  return next_ticket_ - ticket > kOperations || posted_[ticket % kOperations].unanswered == 0;
}

bool Stream::may_send() const {
  if (sending_ == next_ticket_) return false;
  // The result of s is the credit for s + window.
  const Record& credit = ring_[(next_ - config_.window) % ring_.size()];
  return credit.state != Record::State::kSent;
}

void Stream::send_next(std::int64_t now_ns, Output& output) {
  Posted& posted = posted_[sending_ % kOperations];
  const Operation& operation = posted.operation;
  const std::size_t element = type_bytes(operation.type);
  const std::uint64_t most = config_.operand_bytes / element;
  const auto count = static_cast<std::uint16_t>(std::min(most, operation.count - posted.sent));
  const bool empty = operation.input == nullptr || count == 0;
  const bool burst = operation.count > most || operation.count * element > kBlockOperandBytes;
  const bool last = posted.unsent == 1;
  const Header header = {
      .version = kVersion,
      .kind = Kind::kContribute,
      .flags = static_cast<std::uint8_t>((empty ? kEmptyFlag : 0) | (burst ? kBurstFlag : 0) |
                                         (last ? kLastFlag : 0)),
      .op = operation.op,
      .type = operation.type,
      .count = count,
      .job = config_.job,
      .group = config_.group,
      .sequence = next_,
      .offset = static_cast<std::uint32_t>(posted.sent),
      .slot = static_cast<std::uint16_t>(next_ % ring_.size()),
      .child = config_.child};
  const std::size_t bytes = empty ? 0 : count * element;
  const auto packet = packet_of(next_).first(kHeaderBytes + bytes);
  if (!empty) {
    std::memcpy(packet.data() + kHeaderBytes, operation.input + posted.sent * element, bytes);
  }
  seal(config_.key, header, packet);
  if (!waits()) {
    waiting_since_ns_ = now_ns;
    for (Switch& one : path_) one.unanswered = 0;
  }
  Record& sent = record(next_);
  sent = {
      .state = Record::State::kSent,
      .sequence = next_,
      .packet_bytes = packet.size(),
      .sent_ns = now_ns,
      .ticket = sending_,
      .output = operation.output == nullptr ? nullptr : operation.output + posted.sent * element};
  output.send({&owner(next_), 1}, packet);
  ++counts_.packets;
  ++next_;
  posted.sent += count;
  if (--posted.unsent == 0) ++sending_;
}

std::int64_t Stream::retry_ns(const Record& record) const {
  const StreamTimes& times = config_.times;
  const std::int64_t once = smooth_ns_ == 0 ? times.first_retry_ns : smooth_ns_ + 4 * deviation_ns_;
  const std::int64_t doubled = std::max(once, times.least_retry_ns)
                               << std::min(std::max(record.tries, probe_rounds_), kMostDoublings);
  return std::min(doubled, times.most_retry_ns);
}

// While results come, packets are under way: what is lost of them is overtaken by others, or is the
// last.
std::int64_t Stream::due_ns(const Record& record) const {
  if (record.passed == kPassedMeansLost) return record.sent_ns;
  return std::max({record.sent_ns, news_ns_, probed_ns_}) + retry_ns(record);
}

void Stream::send_again(Record& record, std::int64_t now_ns, Output& output) {
  const auto packet = packet_of(record.sequence).first(record.packet_bytes);
  Header header = load_header(packet.data());
  if ((header.flags & kAgainFlag) == 0 || header.child != config_.child) {
    header.flags |= kAgainFlag;
    header.child = config_.child;
    seal(config_.key, header, packet);
  }
  if (record.tries < kMostDoublings) ++record.tries;
  record.passed = 0;
  record.sent_ns = now_ns;
  output.send({&owner(record.sequence), 1}, packet);
  ++counts_.packets;
  ++counts_.again;
}

// Where nothing is answered, mostly a host is late, and no packet lost: the oldest one finds out,
// then twice as many each time. A whole window would fill the wires with what is there already.
void Stream::send_again_what_is_due(std::int64_t now_ns, Output& output) {
  std::uint32_t probes = 0;
  for (std::uint32_t sequence = first_; sequence != next_; ++sequence) {
    Record& one = record(sequence);
    if (one.state != Record::State::kSent || due_ns(one) > now_ns) continue;
    if (one.passed != kPassedMeansLost && probes++ >> probe_rounds_ != 0) continue;
    send_again(one, now_ns, output);
  }
  if (probes == 0) return;
  probed_ns_ = now_ns;
  if (probe_rounds_ < kMostDoublings) ++probe_rounds_;
}

void Stream::progress(std::int64_t now_ns, Output& output) {
  if (!status_.ok()) return;
  while (may_send()) send_next(now_ns, output);
  send_again_what_is_due(now_ns, output);
  look_after_switches(now_ns, output);
}

// When the next question is due, or the last one has been open for too long.
std::int64_t Stream::due_ns(const Switch& one) const {
  const StreamTimes& times = config_.times;
  const std::int64_t last_ns = std::max(one.heard_ns, one.asked_ns);
  if (!waits()) return last_ns + times.keep_ns;
  return std::max(last_ns, waiting_since_ns_) + times.give_up_ns / StreamTimes::kQuestions;
}

// A packet that is not answered may wait for another host, for as long as that takes. A switch that
// lives says so; one that was not asked, because this host slept, is not dead. Who waits for
// nothing asks too, that its group is not freed as idle.
void Stream::look_after_switches(std::int64_t now_ns, Output& output) {
  if (owned_) return;
  for (Switch& one : path_) {
    if (due_ns(one) > now_ns) continue;
    if (waits() && one.unanswered == StreamTimes::kQuestions) {
      status_ = Status(Code::kPeerDead, "aggregate: the switch at " + text(one.at) +
                                            " has not answered " + std::to_string(one.unanswered) +
                                            " questions: does carillon switchd still run there?");
      return;
    }
    ask(one, now_ns, output);
  }
}

void Stream::ask(Switch& one, std::int64_t now_ns, Output& output) {
  one.asked_ns = now_ns;
  if (waits()) ++one.unanswered;
  std::array<std::byte, kHeaderBytes> packet{};
  const Header header = {.version = kVersion,
                         .kind = Kind::kAskLimits,
                         .job = config_.job,
                         .group = config_.group,
                         .sequence = ++asked_};
  seal(config_.key, header, packet);
  output.send({&one.at, 1}, packet);
}

std::optional<std::int64_t> Stream::due_ns() const {
  if (!status_.ok() || path_.empty()) return {};
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t due = kNever;
  for (const Switch& one : path_) {
    if (!owned_) due = std::min(due, due_ns(one));
  }
  for (std::uint32_t sequence = first_; sequence != next_; ++sequence) {
    const Record& one = ring_[sequence % ring_.size()];
    if (one.state == Record::State::kSent) due = std::min(due, due_ns(one));
  }
  if (due == kNever) return {};
  return due;
}

bool Stream::take(const Endpoint& from, std::span<const std::byte> datagram, std::int64_t now_ns) {
  const auto sender =
      std::find_if(path_.begin(), path_.end(), [&](const Switch& one) { return one.at == from; });
  const auto packet = parse(datagram);
  if (sender == path_.end() || !packet || packet->header.job != config_.job ||
      packet->header.group != config_.group) {
    return false;
  }
  const Header& header = packet->header;
  const bool first = from == owner(packet->header.sequence);
  bool news = false;
  if (status_.ok() && !owned_ && header.kind == Kind::kRefuse) {
    news = first && take_refusal(header, datagram);
  } else if (status_.ok() && is_authentic(config_.key, datagram)) {
    news = header.kind == Kind::kLimits ||
           (first && header.kind == Kind::kResult && take_result(*packet, now_ns));
  }
  if (news) {
    sender->heard_ns = now_ns;
    sender->unanswered = 0;
  } else {
    ++counts_.ignored;
  }
  return true;
}

bool Stream::take_result(const Packet& packet, std::int64_t now_ns) {
  const Header& header = packet.header;
  Record& answered = record(header.sequence);
  if (answered.state != Record::State::kSent || answered.sequence != header.sequence) return false;
  const Header sent = load_header(packet_of(header.sequence).data());
  constexpr std::uint8_t kSame = kBurstFlag | kLastFlag;
  if (header.slot != sent.slot || header.op != sent.op || header.type != sent.type ||
      header.count != sent.count || header.offset != sent.offset ||
      (header.flags & kSame) != (sent.flags & kSame)) {
    return false;
  }
  const auto result = packet.payload;
  std::copy(result.begin(), result.end(), result_of(header.sequence));
  if (answered.output != nullptr) std::copy(result.begin(), result.end(), answered.output);
  answered.result_bytes = result.size();
  answered.state = Record::State::kAnswered;
  news_ns_ = now_ns;
  probe_rounds_ = 0;
  if (answered.tries == 0) measure(now_ns - answered.sent_ns);
  notice_passed(header.sequence, answered.sent_ns);
  if (!answered.settled) --posted_[answered.ticket % kOperations].unanswered;
  while (first_ != next_ && record(first_).state == Record::State::kAnswered) ++first_;
  ++counts_.results;
  return true;
}

// What was sent before and is overtaken by several is lost, most likely.
void Stream::notice_passed(std::uint32_t sequence, std::int64_t sent_ns) {
  for (std::uint32_t before = first_; before != sequence; ++before) {
    Record& one = record(before);
    if (one.state != Record::State::kSent || one.sent_ns > sent_ns) continue;
    if (one.passed < kPassedMeansLost) ++one.passed;
  }
}

void Stream::measure(std::int64_t round_trip_ns) {
  round_trip_ns = std::max<std::int64_t>(round_trip_ns, 1);
  if (smooth_ns_ == 0) {
    smooth_ns_ = round_trip_ns;
    deviation_ns_ = round_trip_ns / 2;
    return;
  }
  const std::int64_t apart = std::max(smooth_ns_ - round_trip_ns, round_trip_ns - smooth_ns_);
  deviation_ns_ += (apart - deviation_ns_) / 4;
  smooth_ns_ = std::max<std::int64_t>(smooth_ns_ + (round_trip_ns - smooth_ns_) / 8, 1);
}

bool Stream::take_refusal(const Header& header, std::span<const std::byte> datagram) {
  const Record& refused = record(header.sequence);
  if (refused.state != Record::State::kSent || refused.sequence != header.sequence) return false;
  if (header.child != config_.child && header.child != kAllChildren) return false;
  if (!is_refusal_of(config_.key, packet_of(header.sequence), datagram)) return false;
  status_ = refusal_status(path_.front().at, header.reason);
  return true;
}

void Stream::go_on(std::span<const Endpoint> owners, std::uint16_t child, std::uint32_t first,
                   std::int64_t now_ns, Output& output) {
  config_.child = child;
  path_.clear();
  for (const Endpoint& at : owners) path_.push_back({.at = at});
  owned_ = true;
  status_ = {};
  smooth_ns_ = 0;
  news_ns_ = now_ns;
  first_ = first;
  for (std::uint32_t sequence = first; sequence != next_; ++sequence) {
    Record& one = record(sequence);
    if (one.state == Record::State::kAnswered) {
      one.output = nullptr;
      one.settled = true;
    }
    one.state = Record::State::kSent;
    one.tries = 0;
    send_again(one, now_ns, output);
  }
}

std::optional<Held> Stream::held(std::uint32_t sequence) const {
  const Record& one = ring_[sequence % ring_.size()];
  if (one.state == Record::State::kFree || one.sequence != sequence) return {};
  const auto packet = packet_of(sequence).first(one.packet_bytes);
  Held held = {
      .header = load_header(packet.data()), .operand = packet.subspan(kHeaderBytes), .result = {}};
  if (one.state == Record::State::kAnswered) {
    held.result = std::span<const std::byte>(result_of(sequence), one.result_bytes);
  }
  return held;
}

}  // namespace carillon::aggregate
