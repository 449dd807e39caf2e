// SPDX-License-Identifier: Apache-2.0
//
// Persistent collectives: flights that are begun again and again, by MPI_Start.
//
// A generalized request would lose its handle where it is waited for. So the handle is a persistent
// receive of an empty message from this process itself, on a communicator of ours, and the end of
// the collective is that message. Mostly the host hears of neither: MPI_Wait and its like complete
// what is theirs alone. Only where a call of the host's has to look at the handle among others is
// it shown to the host: the receive begins, and the message is sent when the collective has ended,
// or at once if it has already.
#pragma once

#include <atomic>
#include <cstddef>

#include "flight.h"

namespace carillon::shim {

/// How many there are that the program has begun and was not told the end of.
extern constinit std::atomic<int> g_active_persistent;
inline bool any_active_persistent() {
  return g_active_persistent.load(std::memory_order_relaxed) > 0;
}

/// A persistent collective in the making, and back if it was left or failed.
Flight* new_persistent(Communicator& communicator, std::size_t counted, MPI_Comm asked);
void drop_persistent(Flight* flight);
/// It is made: the program gets its handle.
int keep_persistent(Flight* flight, MPI_Request* handle);

/// Null: the handle is none of a persistent collective that is active.
Flight* find_active(MPI_Request handle);
inline bool is_shown(const Flight& flight) {
  return (flight.happened.load(std::memory_order_relaxed) & Flight::kShown) != 0;
}
/// Whether one that is active has ended.
inline bool has_landed(const Flight& flight) {
  // Partner: land_persistent. What it found at the end of the collective is seen here.
  return (flight.happened.load(std::memory_order_acquire) & Flight::kLanded) != 0;
}
/// From here on the host knows of it.
void show_persistent(Flight* flight);
/// The collective has ended, and the program does not know.
void land_persistent(Flight* flight);
/// Now it does: the flight may begin again.
void end_persistent(Flight* flight);

/// In MPI_Finalize, when none is flying.
void free_all_persistent();

}  // namespace carillon::shim
