// SPDX-License-Identifier: Apache-2.0
//
// The state of a replay: where each rank is in its program, and the collectives that are in flight.
// A rank that is in several is a *member* of each: members have numbers of their own, behind those
// of the ranks, so that messages of different collectives do not meet. The first of these numbers
// are the nodes' servlets, where there are any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/program.h"
#include "sim/emission.h"
#include "sim/lessons.h"
#include "sim/replay.h"
#include "sim/switches.h"

namespace carillon::sim {

/// Of a node, what has come of multicasts to nodes; simulation_reception-inl.h.
struct NodeReception {
  struct Came {
    std::int64_t time = 0;
    std::uint32_t word = 0, path = 0;  ///< of its event
  };
  std::uint32_t receiver = 0;      ///< who takes them from the network
  std::int64_t taken = INT64_MIN;  ///< when it took one last
  /// By writer and number, which several have that are matched in their order: what the receiver
  /// has not taken.
  std::multimap<std::pair<std::uint32_t, std::int32_t>, Came> came;
};

/// A call that is under way: of a simulation of one call that one.
struct Flight {
  const Job* job = nullptr;
  Emission* emission = nullptr;
  std::uint32_t base = 0;               ///< the number of its first member
  std::optional<Lessons> lessons = {};  ///< once a rank has ended a stage that another one follows
  std::unique_ptr<Switches> switches = {};  ///< once a leader has something for them
  std::unordered_map<std::int32_t, NodeReception> receptions = {};  ///< by node
  // Of a replay:
  std::uint32_t team = 0, sequence = 0;
  const program::Call* first_call = nullptr;  ///< as the first rank that started it makes it,
  Rank first_rank = 0;                        ///< this one
  Rank started = 0, ended = 0;
  std::int64_t releases = 0;  ///< on their way to its members
};

/// What a member has beside a rank's state.
struct MemberState {
  /// Of a rank or servlet: the last message that it was idle for; of a member that is handed over:
  /// its rank's.
  std::uint32_t path = 0;
  Flight* flight = nullptr;
  const program::Call* call = nullptr;  ///< null: not started
  std::uint32_t owner = 0;              ///< the rank of the program
  std::uint32_t agent = 0;              ///< on whose CPU it goes on: its owner, or a servlet
  std::uint32_t slot = 0;               ///< of its body
};

/// A rank in its program.
struct Actor {
  struct Loop {
    std::size_t begin = 0;
    std::int64_t left = 0;  // rounds, this one included
  };
  struct Slot {
    std::uint32_t call = 0;
    bool in_flight = false;
    bool handed_over = false;  ///< to the servlet
    std::int64_t end_ps = 0;
    std::uint32_t path = 0;  ///< of the rank, when it ended
  };
  const program::Body* body = nullptr;
  std::size_t next = 0;  // step
  std::vector<Loop> loops;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> members;                          // in flight on its own CPU
  std::unordered_map<std::uint32_t, std::uint32_t> sequences;  // calls so far, by team
  std::int64_t clock_ps = 0;    // Progress::kThread: the program's own time,
  std::uint32_t path = 0;       // and what it last waited for
  std::vector<StepSpan> spans;  // of the critical path: what it did
  const program::Step* doing = nullptr;
  std::int64_t since_ps = 0;        // when it began
  std::int64_t memory_busy_ps = 0;  // of a computation: the node's memory until then
  std::int64_t stretched_ps = 0;    // and by how much it has been made longer
  bool waiting = false;             // for what is in flight in `slot`
  std::uint32_t slot = 0;
  bool inside = false;  // start or wait: progress may be made
  bool ended = false;
};

struct ReplayState {
  explicit ReplayState(const Replay& what)
      : replay(what), teams(what.program), actors(static_cast<std::size_t>(what.program.ranks)) {
    report.ranks.resize(actors.size());
    nodes.resize(teams.size());
  }

  /// An algorithm for a call on a team; kept for the next such call.
  struct Plan {
    Job job;
    std::unique_ptr<Emission> emission;
  };

  const Replay& replay;
  program::TeamTable teams;
  std::vector<Actor> actors;
  std::vector<std::vector<std::uint32_t>> servlets;  // of each node: the members in its hands
  std::vector<std::shared_ptr<const Nodes>> nodes;   // of each team, once it is known
  std::map<std::pair<const program::Call*, std::uint32_t>, std::unique_ptr<Plan>> plans;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Flight>> flights;
  std::unordered_map<Rank, std::vector<std::uint32_t>> free_bases;  // by size
  std::uint32_t next_base = 0;
  std::int64_t steps = 0;
  ReplayReport report;
};

}  // namespace carillon::sim
