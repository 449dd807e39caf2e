// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <algorithm>
#include <array>

namespace carillon {
namespace {

constexpr std::array<std::string_view, kOpKinds> kOpNames = {
    "copy", "reduce", "put",       "signal",  "wait",     "send",
    "recv", "repeat", "multicast", "receive", "aggregate"};
constexpr std::array<std::string_view, 5> kSpaceNames = {"input", "output", "scratch", "slot",
                                                         "counts"};

// The waits of a strand by their messages: of the same message the last one.
class Waits {
 public:
  static constexpr std::uint32_t kNone = 0;
  explicit Waits(const Schedule& schedule) : schedule_(schedule) {}

  void clear(std::size_t ops) {
    std::size_t size = 16;
    while (size < 2 * ops) size *= 2;
    places_.assign(size, kNone);
  }
  void add(std::size_t op) {
    place(schedule_.ops[op].message) = static_cast<std::uint32_t>(op + 1);
  }
  /// One more than the op; kNone if nobody waits for it.
  [[nodiscard]] std::uint32_t find(const Message& message) { return place(message); }

 private:
  std::uint32_t& place(const Message& message) {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = hash(message) & mask;
    while (places_[at] != kNone && schedule_.ops[places_[at] - 1].message != message) {
      at = (at + 1) & mask;
    }
    return places_[at];
  }
  static std::size_t hash(const Message& message) {
    auto hash = static_cast<std::uint64_t>(message.channel);
    for (const std::int32_t part : {message.peer, message.index, message.index_stride}) {
      hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    return hash;
  }

  const Schedule& schedule_;
  std::vector<std::uint32_t> places_;  // a power of two, at most half of them in use
};

}  // namespace

std::string_view op_name(OpKind kind) { return kOpNames.at(static_cast<std::size_t>(kind)); }
std::string_view readers_name(Channel channel) {
  if (channel == Channel::kAll) return "all";
  if (channel == Channel::kDomain) return "domain";
  if (channel == Channel::kNodes) return "nodes";
  return channel == Channel::kTeam ? "team" : "leaders";
}

bool in_group(Channel channel, Rank rank, const Limits& limits) {
  return channel != Channel::kLeaders || limits.is_leader(rank);
}

bool hears(Channel channel, Rank writer, Rank rank, const Limits& limits) {
  if (channel == Channel::kAll) return limits.share_node(writer, rank);
  if (channel == Channel::kDomain) return limits.share_domain(writer, rank);
  if (channel == Channel::kNodes) return !limits.share_node(writer, rank);
  return in_group(channel, rank, limits);
}

Rank readers_of(Channel channel, Rank rank, Rank ranks, const Limits& limits) {
  switch (channel) {
    case Channel::kAll: return limits.node_size(rank, ranks) - 1;
    case Channel::kDomain: return limits.domain_size(rank, ranks) - 1;
    case Channel::kTeam: return ranks - 1;
    case Channel::kLeaders: return limits.one_node() ? 0 : limits.nodes->count() - 1;
    case Channel::kNodes: return ranks - limits.node_size(rank, ranks);
    default: return 1;
  }
}

std::string_view space_name(Space space) { return kSpaceNames.at(static_cast<std::size_t>(space)); }

bool is_one_way(const Schedule& schedule) {
  const auto has = [&](bool (*is)(OpKind)) {
    return std::any_of(schedule.ops.begin(), schedule.ops.end(),
                       [is](const Op& op) { return is(op.kind); });
  };
  return !has(is_outgoing) || !has(is_incoming);
}

std::vector<std::int64_t> release_points(const Schedule& schedule) {
  std::vector<std::int64_t> points(schedule.ops.size(), -1);
  Waits waits(schedule);                                    // the strand's, up to this op
  std::vector<std::size_t> loop_ends(schedule.ops.size());  // of the loops that waits are in, or 0
  for (const Strand& strand : schedule.strands) {
    waits.clear(strand.op_count);
    std::size_t loop = 0;
    std::size_t loop_end = 0;
    for (std::size_t i = strand.first_op; i < std::size_t{strand.first_op} + strand.op_count; ++i) {
      const Op& op = schedule.ops[i];
      if (op.kind == OpKind::kRepeat) {
        loop = i;
        loop_end = i + op.body + 1;
      }
      if (op.kind == OpKind::kWait) {
        points[i] = static_cast<std::int64_t>(i);
        loop_ends[i] = i < loop_end ? loop_end : 0;
        waits.add(i);
      }
      for (const Buffer& buffer : schedule.src(op)) {
        if (buffer.space != Space::kSlot) continue;
        const std::uint32_t wait = waits.find(buffer.message);
        if (wait == Waits::kNone) continue;
        const std::size_t wait_op = wait - 1;
        const std::size_t wait_loop_end = loop_ends[wait_op];
        // A read behind its loop keeps a message no longer: it is an error the machine reports.
        if (wait_loop_end != 0 && i >= wait_loop_end) continue;
        const bool enters_loop = i < loop_end && wait_op < loop;
        points[wait_op] = static_cast<std::int64_t>(enters_loop ? loop : i);
      }
    }
  }
  return points;
}

}  // namespace carillon
