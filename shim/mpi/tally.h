// SPDX-License-Identifier: Apache-2.0
//
// What the calls of each collective on each communicator came to: how many, how many bytes, how
// long, and by which algorithm they were done, or why they were left to the host. Kept only where
// CARILLON_STATS is set (observe.h), of calls that did not fail.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "call.h"
#include "communicator.h"
#include "flight.h"

namespace carillon::shim {

using TallyTime = std::chrono::steady_clock::duration;

/// One that blocks and has ended, or one that was left. `communicator`: as far as carillon knows
/// it.
void tally_call(std::size_t called, const Call& call, Communicator& communicator, Reason left,
                TallyTime time);
/// What a flight moves, and where. With the call's communicator; a persistent one has its own.
void tally_known(const Call& call, Communicator& communicator, Flight* flight);
/// It takes off; the call that it began in took so long until now.
void tally_start(Flight* flight, TallyTime time);
/// It has ended; it was waited for so long.
void tally_end(const Flight& flight, Reason left, TallyTime time);

/// For people; empty if there is nothing.
std::string tally_text();
/// The elements of an array of JSON, each after `separator` but for the first.
std::string tally_json(const char* separator);

}  // namespace carillon::shim
