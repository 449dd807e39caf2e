// SPDX-License-Identifier: Apache-2.0
//
// Recording: which collectives the program calls, and how long it computes between them, to one
// file for carillon sim --program. Recorded calls go the slow way (observe.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "call.h"
#include "communicator.h"
#include "flight.h"
#include "observe.h"

namespace carillon::shim {

/// Collective over a communicator of all processes of a world (world.h), whose calls among
/// themselves are recorded; others are only timed. The file is written by its rank 0, if the
/// recordings of all are whole. finish_recording does nothing if there is no recording.
void start_recording(const std::string& file, MPI_Comm world);
void finish_recording();
/// It has started, and is to be finished. With a lock held: calls nothing of the host's.
bool has_recording();

struct RecordedTime {
  ObserverClock::time_point begin, end;
};

/// A call has ended.
void record_call(const RecordedTime& time, std::size_t called, Communicator& communicator,
                 const Call& call, Reason left);
/// What a flight does, each time that it begins.
void record_known(std::size_t called, const Call& call, Flight* flight);
/// It has begun, and is known. What ends it is recorded, too, when it comes.
void record_start(ObserverClock::time_point begin, Flight* flight);
/// One that has a number in the recording has ended; the program has waited for it since `begin`.
void record_end(ObserverClock::time_point begin, std::uint32_t recorded);

}  // namespace carillon::shim
