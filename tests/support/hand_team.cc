// SPDX-License-Identifier: Apache-2.0
#include "support/hand_team.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "schedule/text.h"

namespace carillon::test {

Emit emit_text(std::string_view text) {
  return [parsed = parse_schedules(text)](Rank rank, std::int32_t /*stage*/,
                                          std::span<const std::int64_t>) -> Result<Schedule> {
    if (!parsed.ok()) return parsed.status();
    for (const Schedule& schedule : parsed.value()) {
      if (schedule.rank == rank) return schedule;
    }
    return Status(Code::kInvalidArgument, "no schedule of rank " + std::to_string(rank));
  };
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) {
    std::fprintf(stderr, "no '%.*s' in\n%s", static_cast<int>(from.size()), from.data(),
                 text.c_str());
    std::abort();
  }
  return text.replace(at, from.size(), to);
}

}  // namespace carillon::test
