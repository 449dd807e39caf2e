// SPDX-License-Identifier: Apache-2.0
//
// After every write that a member of the team may sleep for.
#pragma once

#include "engine/engine.h"
#include "engine/team.h"
#include "transport/shm/doorbell.h"

namespace carillon {

void wake_sleeping_readers(Team& team, int reader);

/// `reader` is a rank of the team, Pool::kToAll or kToDomain.
inline void wake_readers(Team& team, int reader) {
  if (shm::anybody_sleeps(team.engine().segment())) [[unlikely]] {
    wake_sleeping_readers(team, reader);
  }
}

}  // namespace carillon
