// SPDX-License-Identifier: Apache-2.0
//
// The cores of a host, where it has fewer of them than ranks. A rank stays on its core until it
// waits; then the next one in line goes on, a switch later. Where none can go on, the ranks of the
// core take turns in looking whether what they wait for has come; simulated is that of those the
// right one looks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "machine/machine.h"
#include "schedule/nodes.h"

namespace carillon::sim {

class Cores {
 public:
  /// `nodes` null: all ranks are on one node. A machine of which no switch is known has cores for
  /// all.
  Cores(const machine::Node& node, const Nodes* nodes, Rank ranks) : switch_ps_(node.switch_ps) {
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

  /// The rank could go on at `time`: from when it does, or nothing if another one is on its core;
  /// leave() then says when it is its turn.
  std::optional<std::int64_t> claim(std::uint32_t rank, std::int64_t time) {
    Core& mine = core(rank);
    if (mine.owner != kNobody) {
      if (std::find(mine.line.begin(), mine.line.end(), rank) == mine.line.end()) {
        mine.line.push_back(rank);
      }
      return std::nullopt;
    }
    mine.owner = rank;
    const bool switches = mine.last != rank && mine.last != kNobody;
    return std::max(time, mine.free + (switches ? switch_ps_ : 0));
  }

  struct Turn {
    std::uint32_t rank = 0;
    std::int64_t time = 0;
  };
  /// The rank waits from `time` on, or has ended: who goes on, and from when.
  std::optional<Turn> leave(std::uint32_t rank, std::int64_t time) {
    Core& mine = core(rank);
    mine.last = rank;
    mine.free = time;
    mine.owner = kNobody;
    if (mine.line.empty()) return std::nullopt;
    mine.owner = mine.line.front();
    mine.line.pop_front();
    return Turn{mine.owner, time + switch_ps_};
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
    std::uint32_t last = kNobody;    // who was its owner before
    std::deque<std::uint32_t> line;  // who could go on
  };
  Core& core(std::uint32_t rank) { return cores_[core_of_[rank]]; }

  std::int64_t switch_ps_;
  std::vector<std::size_t> core_of_;
  std::vector<Core> cores_;  // of all hosts; none: nobody has to share
};

}  // namespace carillon::sim
