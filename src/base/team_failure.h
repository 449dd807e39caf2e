// SPDX-License-Identifier: Apache-2.0
//
// That a team cannot go on is logged, unless somebody says it who knows more of the call.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace carillon {

struct TeamFailure {
  std::string_view team;  // its name; empty: it has none
  int rank = 0, size = 0;
  std::string_view collective;  // the oldest that fails, e.g. "allreduce"; empty: none does
  const Status& why;
};

/// Of this process; null: the log. Called with the engine's lock, before other members are told;
/// once for each team, in the thread that has found it out.
inline constinit std::atomic<void (*)(const TeamFailure&)> g_say_team_failure = nullptr;

}  // namespace carillon
