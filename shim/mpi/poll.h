// SPDX-License-Identifier: Apache-2.0
//
// Blocking functions of the host as loops over a form that does not block, so that what carillon
// has in flight gets progress.
#pragma once

#include <sched.h>

#include "flight.h"
#include "observe.h"

namespace carillon::shim {

/// Asks, with progress in between, until `done` is set or the host's status is an error.
template <typename Ask>
int poll_until(const int* done, Ask ask) {
  constexpr int kPollsBeforeYielding = 100;
  const ObservedPolling observed;
  for (int polls = 0;; ++polls) {
    advance_flights();
    const int status = ask();
    if (status != MPI_SUCCESS || *done != 0) return status;
    if (polls >= kPollsBeforeYielding) sched_yield();
  }
}

}  // namespace carillon::shim
