// SPDX-License-Identifier: Apache-2.0
//
// The text form of schedules, for people, golden files and the command line: one op a line, exact
// both ways (parse_schedule(to_text(s)) == s for every schedule that passes check_schedule).
// docs/schedule.md describes it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "schedule/schedule.h"

namespace carillon {

std::string to_text(const Schedule& schedule);
/// Several ranks' schedules, one after another.
std::string to_text(std::span<const Schedule> schedules);

/// One op, as it stands in the text: "put 3 #0 output[0+64]". Safe for malformed schedules.
std::string op_text(const Schedule& schedule, std::size_t op);

/// Errors name the line and the reason. What is parsed is grammatical, not yet correct: see
/// check_schedule and verify.
Result<Schedule> parse_schedule(std::string_view text);
Result<std::vector<Schedule>> parse_schedules(std::string_view text);

}  // namespace carillon
