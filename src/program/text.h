// SPDX-License-Identifier: Apache-2.0
//
// The file of a program: lines of words (docs/simulator.md). The interposer writes its recordings
// with the same functions line by line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "program/program.h"

namespace carillon::program {

inline constexpr std::string_view kFirstLine = "carillon-program 1";
inline constexpr Rank kMaxRanks = 1 << 20;
inline constexpr std::int32_t kMaxElementBytes = 1 << 24;
/// A step's time, in ns: eleven days.
inline constexpr std::int64_t kMaxNs = 1'000'000'000'000'000;

/// What is wrong, and where: "FILE:LINE: ...".
Result<Program> parse(std::string_view text, const std::string& source);
Result<Program> load(const std::string& path);

/// What parse reads as this program.
std::string to_text(const Program& program);

/// "0-3,7,8-14:2".
std::string ranks_text(std::span<const Rank> ranks);
/// "team NAME 0-3" or "teams NAME blocks 4"; no end of line, as for the others.
std::string teams_line(const Teams& teams);
std::string call_line(const Call& call, std::string_view teams_name);
std::string rank_line(std::span<const Rank> ranks);
std::string compute_line(std::int64_t ns);
std::string do_line(std::string_view call);
std::string start_line(std::string_view call, std::string_view id);
std::string wait_line(std::string_view id);
std::string other_line(std::string_view name, std::int64_t ns);

}  // namespace carillon::program
