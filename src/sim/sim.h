// SPDX-License-Identifier: Apache-2.0
//
// The simulator: what a collective call costs on a machine, from the very schedules that run there.
// Deterministic: same job, machine and options, same report. machine.h says what things cost,
// docs/simulator.md what is simulated and what is not.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "machine/machine.h"
#include "schedule/builder.h"

namespace carillon::sim {

/// What ranks of a call have in common. Those of a class have the same schedule but for who their
/// peers are, and these follow from one another: all of them are moved as the rank itself is.
struct Symmetry {
  enum class Peers : std::uint8_t {
    kOwn,     ///< nothing is known
    kTurned,  ///< rank + x, modulo the ranks
    kFlipped  ///< rank xor x
  };
  Peers peers = Peers::kOwn;
  std::function<std::int64_t(Rank rank)> class_of = {};

  /// What is the same for all ranks of the class, and the peer that a rank has by it.
  [[nodiscard]] std::uint32_t relative(std::uint32_t rank, std::uint32_t peer,
                                       std::uint32_t ranks) const {
    if (peers == Peers::kTurned) return peer < rank ? peer + (ranks - rank) : peer - rank;
    return peers == Peers::kFlipped ? peer ^ rank : peer;
  }
  static std::uint32_t peer(Peers peers, std::uint32_t rank, std::uint32_t relative,
                            std::uint32_t ranks) {
    if (peers == Peers::kFlipped) return rank ^ relative;
    if (peers == Peers::kOwn) return relative;
    const std::uint32_t left = ranks - relative;  // until the numbers begin anew
    return rank >= left ? rank - left : rank + relative;
  }
};

/// A call of the whole team. Limits::nodes says who shares a node; null: all do.
struct Job {
  Call call;                  ///< its rank and local part are filled in for each rank
  std::vector<Local> locals;  ///< one per rank; empty: not in place, no tables
  /// Writes the part of the call's rank: an algorithm's emit.
  std::function<void(const Call& call, Builder& builder)> emit;
  Symmetry symmetry = {};  ///< not with locals
};

enum class Activity : std::uint8_t { kSend, kWait, kCopy, kReduce };
inline constexpr int kActivities = 4;
std::string_view activity_name(Activity activity);

/// Something a rank did, as it is told to Options::on_span.
struct Span {
  Rank rank = 0;
  std::int32_t strand = 0;
  OpKind op = OpKind::kCopy;
  Rank peer = -1;  ///< of a message; -1: none, or all
  std::int64_t bytes = 0;
  std::int64_t begin_ps = 0, end_ps = 0;
};

struct Options {
  std::int64_t skew_ps = 0;             ///< ranks begin at random times from 0 to this,
  std::uint64_t seed = 1;               ///< drawn from this seed;
  std::vector<std::int64_t> starts_ps;  ///< or, if not empty, at these
  /// A schedule of at most so many positions (builder.h, Window) is emitted whole.
  std::int64_t whole_positions = 512;
  std::int64_t window_positions = 128;  ///< else each strand has so many at a time
  bool critical_path = false;           ///< takes memory per message
  bool rank_times = false;              ///< fill Report::rank_ps
  std::function<void(const Span&)> on_span = {};
  /// Called every few dozen events, with the number of messages so far; false: stop.
  std::function<bool(std::int64_t messages)> on_progress = {};
  /// Called now and then while a rank's schedule is emitted; true: stop.
  std::function<bool()> stops = {};
};

/// kTimeout: of a simulation that was told to stop.
inline Status interrupted() { return {Code::kTimeout, "the simulation was interrupted"}; }

/// A stretch of the critical path: a rank at work, or (from != rank) a message on its way to it.
struct PathStep {
  Rank from = 0, rank = 0;
  std::int64_t begin_ps = 0, end_ps = 0;
  std::string what = {};  ///< of a program: the name of the call, or "compute"
};

/// Picoseconds of all ranks together, for which 63 bits are too few.
using SumPs = __int128;

struct Report {
  std::int64_t latency_ps = 0;  ///< from the first rank's begin to the last rank's end
  std::int64_t messages = 0;
  std::int64_t bytes = 0;        ///< of their payloads
  SumPs rank_sum_ps = 0;         ///< of each rank's own begin to end: the sum,
  std::int64_t rank_max_ps = 0;  ///< and the longest
  std::vector<std::int64_t> rank_ps;
  /// What strands spent their time with, summed over all ranks.
  std::array<SumPs, kActivities> activity_ps{};
  std::vector<PathStep> critical_path;
};

Result<Report> simulate(const Job& job, const machine::Machine& machine,
                        const Options& options = {});

}  // namespace carillon::sim
