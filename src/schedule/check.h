// SPDX-License-Identifier: Apache-2.0
//
// What can be said of one rank's schedule without running it: ops are well formed, loops do not
// nest, every buffer is in bounds in every round of its loop. The machine and the engine need
// check nothing of this again; it is also what makes schedules read from text safe.
#pragma once

#include "base/status.h"
#include "schedule/schedule.h"

namespace carillon {

/// Checks the schedule as the part of rank `call.rank`. Params, stage and learned are not used.
Status check_schedule(const Schedule& schedule, const Call& call);

/// Where the buffer lies in round `iteration` of its loop: table entries looked up, stride
/// applied. The buffer must have passed check_schedule.
Range resolve(const Buffer& buffer, const Tables& tables, std::int64_t iteration);

}  // namespace carillon
