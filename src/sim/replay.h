// SPDX-License-Identifier: Apache-2.0
//
// Replays a program (program/program.h) on a machine: several collectives in flight per rank, over
// several teams, between computations. Deterministic, as a simulation of one call is.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "program/program.h"
#include "sim/sim.h"

namespace carillon::sim {

/// Who progresses a rank's collectives: the program, within start and wait only; a thread with a
/// core of its own; or, what has been started, the servlet of its node: one core for all its ranks.
enum class Progress : std::uint8_t { kCaller, kThread, kServlet };

/// What a rank of a program did, as it is told to Replay::on_step.
struct StepSpan {
  Rank rank = 0;
  std::string_view what;  ///< "compute", or the name of a call
  program::StepKind kind = program::StepKind::kCompute;
  std::int64_t begin_ps = 0, end_ps = 0;
};

struct Replay {
  const program::Program& program;
  std::shared_ptr<const Nodes> nodes;  ///< of the program's ranks; null: all share one
  /// How a team, with these nodes, does such a call.
  std::function<Result<Job>(const Shared&, const std::shared_ptr<const Nodes>&)> job_of;
  Progress progress = Progress::kCaller;
  double compute_scale = 1;         ///< computations take so many times as long
  std::int32_t gather_entries = 1;  ///< Limits::gather_entries of all jobs
  std::function<void(const StepSpan&)> on_step = {};
};

struct ReplayReport {
  struct RankTimes {
    std::int64_t compute_ps = 0;
    std::int64_t other_ps = 0;  ///< in calls that are not simulated
    std::int64_t call_ps = 0;   ///< in starts and waits of collectives
    std::int64_t end_ps = 0;    ///< since the first rank's begin
  };
  struct KindTimes {
    std::int64_t calls = 0;   ///< of teams
    std::int64_t starts = 0;  ///< of their ranks
    SumPs call_ps = 0;        ///< all ranks' starts and waits
  };
  std::int64_t total_ps = 0;  ///< from the first rank's begin to the last rank's end
  std::int64_t messages = 0, bytes = 0;
  std::int64_t others = 0;  ///< calls that are not simulated
  std::vector<RankTimes> ranks;
  std::array<KindTimes, kCollectives> kinds{};  ///< by Collective
  /// What a rank does on it, step by step of the program, and messages on their way.
  std::vector<PathStep> critical_path;
  bool interrupted = false;  ///< by Options::on_progress; so far it came
};

/// Options::rank_times has no meaning here.
Result<ReplayReport> replay(const Replay& replay, const machine::Machine& machine,
                            const Options& options = {});

}  // namespace carillon::sim
