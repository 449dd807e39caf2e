// SPDX-License-Identifier: Apache-2.0
//
// Which non-blocking collectives are the servlet's with CARILLON_SERVLET=auto.
#pragma once

#include <cstdint>
#include <limits>

#include "schedule/problem.h"

namespace carillon {

/// What of a collective decides it, at one rank.
struct ServedCall {
  Collective collective = Collective::kBarrier;
  int ranks = 1;
  bool is_root = false;
  /// One block, or, where there are tables, the more of what this rank sends and receives.
  std::int64_t bytes = 0;
};

/// Served by no bytes: there is nothing to be moved that computing would hide.
inline constexpr std::int64_t kNeverServed = std::numeric_limits<std::int64_t>::max();

/// What this rank moves in the call, about.
std::int64_t moved_bytes(const ServedCall& call);
/// From so many of these on a thread is worth waking.
std::int64_t served_from_bytes(Collective collective);

}  // namespace carillon
