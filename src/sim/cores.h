// SPDX-License-Identifier: Apache-2.0
//
// The cores of a host, where it has fewer of them than ranks. A rank stays on its core until it
// waits. Then its ranks take turns: each looks, a switch after the one before it, whether what it
// waits for has come, and the first one for which it has goes on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "machine/machine.h"
#include "schedule/nodes.h"

namespace carillon::sim {

class Cores {
 public:
  /// `nodes` null: all ranks are on one node. A machine of which no switch is known has cores for
  /// all.
  Cores(const machine::Node& node, std::int64_t look_ps, const Nodes* nodes, Rank ranks)
      : switch_ps_(node.switch_ps), look_ps_(look_ps) {
    if (switch_ps_ == 0) return;
    std::vector<std::int32_t> placed;  // of each host, so many ranks
    core_of_.reserve(static_cast<std::size_t>(ranks));
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto host = static_cast<std::size_t>(
          nodes == nullptr ? 0 : nodes->node_of(rank) / node.nodes_per_host);
      if (placed.size() <= host) placed.resize(host + 1);
      core_of_.push_back(host * static_cast<std::size_t>(node.cores) +
                         static_cast<std::size_t>(placed[host]++ % node.cores));
    }
    if (placed.empty() || *std::max_element(placed.begin(), placed.end()) <= node.cores) return;
    cores_.resize(placed.size() * static_cast<std::size_t>(node.cores));
  }

  [[nodiscard]] bool are_shared() const { return !cores_.empty(); }
  [[nodiscard]] bool has(std::uint32_t rank) { return core(rank).owner == rank; }

  /// The rank could go on at `time`, which is not before `now`. True: it has its core now. Else it
  /// asks again at `*again`, if that is set, or when leave() says.
  bool claim(std::uint32_t rank, std::int64_t time, std::int64_t now,
             std::optional<std::int64_t>* again) {
    Core& mine = core(rank);
    const auto waiting = std::find_if(mine.line.begin(), mine.line.end(),
                                      [&](const Turn& one) { return one.rank == rank; });
    join(mine, rank);
    if (mine.owner == kNobody) {
      const std::int64_t looks = look(mine, rank, time);
      if (looks <= now) {
        if (waiting != mine.line.end()) mine.line.erase(waiting);
        mine.owner = rank;
        return true;
      }
      *again = looks;
    }
    if (waiting == mine.line.end()) mine.line.push_back({rank, time});
    return false;
  }

  struct Turn {
    std::uint32_t rank = 0;
    std::int64_t time = 0;
  };
  /// The rank waits from `time` on, or has ended: who asks again next, and when.
  std::optional<Turn> leave(std::uint32_t rank, std::int64_t time) {
    Core& mine = core(rank);
    mine.free = time;
    mine.last = rank;
    mine.owner = kNobody;
    const std::size_t place = place_of(mine, rank);
    if (place < mine.round.size()) mine.next = (place + 1) % mine.round.size();
    std::optional<Turn> next;
    for (const Turn& other : mine.line) {
      const std::int64_t looks = look(mine, other.rank, std::max(time, other.time));
      if (!next || looks < next->time) next = Turn{other.rank, looks};
    }
    return next;
  }

  /// The rank has ended: it takes no more turns.
  void end(std::uint32_t rank) {
    Core& mine = core(rank);
    const std::size_t place = place_of(mine, rank);
    if (place == mine.round.size()) return;
    mine.round.erase(mine.round.begin() + static_cast<std::ptrdiff_t>(place));
    if (mine.owner == rank) mine.next = place;
    if (mine.owner != rank && place < mine.next) --mine.next;
    if (mine.next >= mine.round.size()) mine.next = 0;
  }

  /// A message is under way to the rank; the rank reads one: how many bytes waited for its core.
  void sent(std::uint32_t rank, std::int64_t bytes) { core(rank).backlog_bytes += bytes; }
  std::int64_t read(std::uint32_t rank, std::int64_t bytes) {
    core(rank).backlog_bytes -= bytes;
    return core(rank).backlog_bytes + bytes;
  }

 private:
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  struct Core {
    std::int64_t free = 0;
    std::int64_t backlog_bytes = 0;  // sent to its ranks, and not read
    std::uint32_t owner = kNobody;
    std::uint32_t last = kNobody;      // its owner before
    std::vector<std::uint32_t> round;  // who has begun and not ended, as they look
    std::size_t next = 0;              // of these: who looks first once it is free
    std::vector<Turn> line;            // who could go on, and from when
  };
  Core& core(std::uint32_t rank) { return cores_[core_of_[rank]]; }

  static std::size_t place_of(const Core& core, std::uint32_t rank) {
    return static_cast<std::size_t>(std::find(core.round.begin(), core.round.end(), rank) -
                                    core.round.begin());
  }
  // Who begins looks before the one who has the core now, or had it last, has another turn.
  static void join(Core& core, std::uint32_t rank) {
    if (place_of(core, rank) < core.round.size()) return;
    const std::size_t last = place_of(core, core.owner == kNobody ? core.last : core.owner);
    const bool ended = last == core.round.size();
    const std::size_t place = ended ? core.next : last;
    core.round.insert(core.round.begin() + static_cast<std::ptrdiff_t>(place), rank);
    if (place < core.next || (ended && core.round.size() > 1)) ++core.next;
  }

  // Of a core that nobody has: when the rank looks first, not before `time`.
  [[nodiscard]] std::int64_t look(const Core& core, std::uint32_t rank, std::int64_t time) const {
    const bool stays = core.last == rank && time <= core.free + look_ps_;
    const auto ranks = static_cast<std::int64_t>(core.round.size());
    if (stays || core.last == kNobody || (core.last == rank && ranks == 1)) {
      return std::max(time, core.free);
    }
    if (ranks == 1) return std::max(time, core.free + switch_ps_);
    const auto before = static_cast<std::int64_t>(core.next);
    const auto place = static_cast<std::int64_t>(place_of(core, rank));
    const std::int64_t turns = 1 + (place - before + ranks) % ranks;
    const std::int64_t first = core.free + turns * switch_ps_, round = ranks * switch_ps_;
    return time <= first ? first : first + (time - first + round - 1) / round * round;
  }

  std::int64_t switch_ps_;
  std::int64_t look_ps_;
  std::vector<std::size_t> core_of_;
  std::vector<Core> cores_;  // of all hosts; none: nobody has to share
};

}  // namespace carillon::sim
