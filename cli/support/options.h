// SPDX-License-Identifier: Apache-2.0
//
// Options that several subcommands share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "support/process.h"

namespace carillon::cli {

/// The most ranks that are started on one machine: a slip of the finger should not.
inline constexpr int kMaxRanksStarted = 4096;
/// For ->check(): 1 to kMaxRanksStarted.
extern const CLI::Range kRanks;

/// PROGRAM ARGS... at the end, with or without "--" before it; nothing after PROGRAM is read.
void take_program(CLI::App& app);
/// What take_program took; fails if there is no program.
Arguments program_of(const CLI::App& app);

/// Fails with one line if a CARILLON_* variable has a value that cannot be; warns on stderr of
/// one that there is not.
void require_settings();

/// "8,4096,64K,1M": sizes in bytes; fails if they are not.
std::vector<std::int64_t> parse_sizes(const std::string& text);

struct RankRange {
  int first = 1, last = 1;
};
/// "1-24" or "7", at most `max`; fails if it is not.
RankRange parse_ranks(const std::string& text, int max);

}  // namespace carillon::cli
