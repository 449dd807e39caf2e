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
    seats_.reserve(static_cast<std::size_t>(ranks));
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto host = static_cast<std::size_t>(
          nodes == nullptr ? 0 : nodes->node_of(rank) / node.nodes_per_host);
      if (placed.size() <= host) placed.resize(host + 1);
      const std::int32_t place = placed[host]++;
      seats_.push_back({.core = host * static_cast<std::size_t>(node.cores) +
                                static_cast<std::size_t>(place % node.cores),
                        .place = place / node.cores});
    }
    if (placed.empty() || *std::max_element(placed.begin(), placed.end()) <= node.cores) return;
    cores_.resize(placed.size() * static_cast<std::size_t>(node.cores));
    for (const Seat& seat : seats_) ++cores_[seat.core].ranks;
  }

  [[nodiscard]] bool are_shared() const { return !cores_.empty(); }
  [[nodiscard]] bool has(std::uint32_t rank) { return core(rank).owner == rank; }

  /// The rank could go on at `time`, which is not before `now`. True: it has its core now. Else it
  /// asks again at `*again`, if that is set, or when leave() says.
  bool claim(std::uint32_t rank, std::int64_t time, std::int64_t now,
             std::optional<std::int64_t>* again) {
    Core& mine = core(rank);
    const auto waiting = std::find(mine.line.begin(), mine.line.end(), rank);
    if (mine.owner == kNobody) {
      const std::int64_t looks = look(rank, time);
      if (looks <= now) {
        if (waiting != mine.line.end()) mine.line.erase(waiting);
        mine.owner = rank;
        return true;
      }
      *again = looks;
    }
    if (waiting == mine.line.end()) mine.line.push_back(rank);
    return false;
  }

  struct Turn {
    std::uint32_t rank = 0;
    std::int64_t time = 0;
  };
  /// The rank waits from `time` on, or has ended: who asks again next, and when.
  std::optional<Turn> leave(std::uint32_t rank, std::int64_t time) {
    Core& mine = core(rank);
    mine.last = rank;
    mine.free = time;
    mine.owner = kNobody;
    std::optional<Turn> next;
    for (const std::uint32_t other : mine.line) {
      const std::int64_t looks = look(other, time);
      if (!next || looks < next->time) next = Turn{other, looks};
    }
    return next;
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
    std::int32_t ranks = 0;
    std::uint32_t owner = kNobody;
    std::uint32_t last = kNobody;     // who was its owner before
    std::vector<std::uint32_t> line;  // who could go on
  };
  struct Seat {
    std::size_t core = 0;
    std::int32_t place = 0;  // among the ranks of the core
  };
  Core& core(std::uint32_t rank) { return cores_[seats_[rank].core]; }

  // Of a core that nobody has: when the rank looks first, not before `time`.
  std::int64_t look(std::uint32_t rank, std::int64_t time) {
    const Core& mine = core(rank);
    const bool stays = mine.last == rank && time <= mine.free + look_ps_;
    if (stays || mine.last == kNobody || mine.ranks == 1) return std::max(time, mine.free);
    const std::int32_t steps =
        1 + (seats_[rank].place + mine.ranks - seats_[mine.last].place - 1) % mine.ranks;
    const std::int64_t first = mine.free + steps * switch_ps_, round = mine.ranks * switch_ps_;
    return time <= first ? first : first + (time - first + round - 1) / round * round;
  }

  std::int64_t switch_ps_;
  std::int64_t look_ps_;
  std::vector<Seat> seats_;  // of all ranks
  std::vector<Core> cores_;  // of all hosts; none: nobody has to share
};

}  // namespace carillon::sim
