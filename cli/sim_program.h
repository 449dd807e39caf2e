// SPDX-License-Identifier: Apache-2.0
//
// carillon sim --program: a whole program on a machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "schedule/problem.h"

namespace carillon::cli {

/// What only programs have.
struct ProgramOptions {
  std::string file;
  Rank ranks = 0;  ///< 0: as many as the program has
  double compute_scale = 1;
  std::string progress = "caller";
};

struct ProgramRequest {
  const ProgramOptions& program;
  const machine::Machine& machine;
  const std::vector<std::string>& algorithms;
  std::function<Limits(Rank ranks)> limits;  ///< who shares a node
  std::int64_t slot_bytes = 0;               ///< of each team; 0: what the library's have
  double skew_us = 0;
  std::uint64_t seed = 1;
  /// When each rank begins; none: all at once, or within the skew.
  std::function<std::vector<std::int64_t>(Rank ranks)> starts;
  std::string timeline;
  bool path = false;             ///< print the critical path, too
  std::vector<Rank> sweep = {};  ///< sizes to simulate, one after another; empty: one
  enum class Form : std::uint8_t { kText, kCsv, kJson } form = Form::kText;
  std::function<bool(std::int64_t messages)> on_progress;  ///< false: it was interrupted
  std::function<bool()> stops;  ///< true: it was; asked while schedules are emitted
};

/// Prints what it costs; false: it was interrupted.
bool simulate_program(const ProgramRequest& request);

}  // namespace carillon::cli
