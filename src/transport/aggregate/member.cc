// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/member.h"

#include <algorithm>
#include <array>
#include <utility>

namespace carillon::aggregate {
namespace {

constexpr std::int64_t kAskAgainNs = 20'000'000;
constexpr std::uint32_t kHostQuestions = 1500;  // of hosts that do not answer: for 30 s

// Hosts that make different calls: no other way of doing them would help.
bool is_fatal(const Status& status) {
  return status.code() == Code::kMismatch || status.code() == Code::kInvalidArgument;
}

}  // namespace

Member::Member(const StreamConfig& config, Hosts hosts)
    : config_(config), hosts_(std::move(hosts)), stream_(config), told_(hosts_.at.size()) {}

void Member::progress(std::int64_t now_ns, Output& output) {
  if (!status_.ok()) return;
  if (reason_.ok()) {
    stream_.progress(now_ns, output);
    if (stream_.status().ok()) return;
    fall_back(stream_.status());
    if (!status_.ok()) return;
  }
  if (group_ != nullptr) return stream_.progress(now_ns, output);
  if (asked_ > 0 && now_ns - asked_ns_ < kAskAgainNs) return;
  // By number and not by time: who slept has not asked meanwhile.
  if (asked_ == kHostQuestions) {
    status_ = Status(Code::kTimeout,
                     "aggregate: the switch is gone, and not all hosts answer each other by UDP");
    return;
  }
  ++asked_;
  asked_ns_ = now_ns;
  for (std::size_t host = 0; host < hosts_.at.size(); ++host) {
    if (!told_[host]) tell(host, true, output);
  }
  go_on(now_ns, output);
}

// From here on nothing of the switch's counts any more: what is told is final.
void Member::fall_back(const Status& why) {
  if (is_fatal(why)) {
    status_ = why;
    return;
  }
  reason_ = why;
  stream_.stop(why);
  told_[hosts_.own] = stream_.first_unanswered();
}

void Member::tell(std::size_t host, bool asks, Output& output) {
  std::array<std::byte, kHeaderBytes> packet{};
  const Header header = {.version = kVersion,
                         .kind = Kind::kFallBack,
                         .flags = static_cast<std::uint8_t>(asks ? kAgainFlag : 0),
                         .job = config_.job,
                         .group = config_.group,
                         .sequence = *told_[hosts_.own],
                         .child = hosts_.own};
  seal(config_.key, header, packet);
  output.send({&hosts_.at[host], 1}, packet);
}

bool Member::take_told(const Endpoint& from, const Header& header, Output& output) {
  if (header.child >= hosts_.at.size() || header.child == hosts_.own ||
      !(hosts_.at[header.child] == from)) {
    return false;
  }
  if (reason_.ok()) {
    was_told_ = true;
    fall_back(Status(Code::kPeerDead,
                     "aggregate: another host of the group has lost a switch, and says why"));
  }
  if (!told_[header.child]) told_[header.child] = header.sequence;
  if ((header.flags & kAgainFlag) != 0) tell(header.child, false, output);
  return true;
}

void Member::go_on(std::int64_t now_ns, Output& output) {
  if (std::ranges::any_of(told_, [](const auto& one) { return !one; })) return;
  const std::uint32_t mine = *told_[hosts_.own];
  std::uint32_t first = mine;
  for (const auto& one : told_) {
    if (static_cast<std::int32_t>(*one - first) < 0) first = *one;
  }
  // Held are all from that on, or none.
  if (first != stream_.next_sequence() && !stream_.held(first)) {
    status_ = Status(Code::kInternal, "aggregate: a host of the group lacks what nobody holds");
    return;
  }
  group_ = std::make_unique<Group>(config_.job, config_.group, config_.key,
                                   Shape{.parent = {},
                                         .parent_child = 0,
                                         .window = config_.window,
                                         .operand_bytes = config_.operand_bytes,
                                         .children = hosts_.at,
                                         .places = hosts_.places},
                                   first);
  stream_.go_on(hosts_.at, hosts_.own, first, now_ns, output);
}

bool Member::take(const Endpoint& from, std::span<const std::byte> datagram, std::int64_t now_ns,
                  Output& output) {
  const auto packet = parse(datagram);
  if (!packet) return false;
  const Header& header = packet->header;
  if (header.kind != Kind::kFallBack && header.kind != Kind::kContribute) {
    return stream_.take(from, datagram, now_ns);
  }
  if (header.job != config_.job || header.group != config_.group || !status_.ok()) return false;
  if (!is_authentic(config_.key, datagram)) return false;
  if (header.kind == Kind::kFallBack) {
    const bool news = take_told(from, header, output);
    if (news && group_ == nullptr && status_.ok()) go_on(now_ns, output);
    return news;
  }
  if (group_ == nullptr || !group_->is_child(header.child, from)) return false;
  const Reason reason = group_->contribute(*packet, counters_, output);
  if (reason != Reason::kNone) {
    status_ = Status(Code::kMismatch,
                     "aggregate: packets of this collective from another rank do not fit: do all "
                     "ranks call it with the same count, type and operator?");
  }
  return true;
}

std::optional<std::int64_t> Member::due_ns() const {
  if (!status_.ok()) return {};
  if (!reason_.ok() && group_ == nullptr) return asked_ns_ + kAskAgainNs;
  return stream_.due_ns();
}

}  // namespace carillon::aggregate
