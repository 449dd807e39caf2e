// SPDX-License-Identifier: Apache-2.0
//
// Requests of persistent collectives that are left to the host: of MPICH 4.0.2, whose MPI_Testall
// ends the process if one is in its array, active or not, where its MPI_Waitall takes it.
#pragma once

#include <mpi.h>

#include <atomic>

namespace carillon::shim {

#ifdef OPEN_MPI
inline void note_left_persistent(MPI_Request /*request*/) {}
inline void forget_left_persistent(MPI_Request /*request*/) {}
inline bool any_left_persistent() { return false; }
inline bool is_left_persistent(MPI_Request /*request*/) { return false; }
#else
/// It is made; any thread.
void note_left_persistent(MPI_Request request);
/// It is freed, or was never such a one.
void forget_left_persistent(MPI_Request request);
bool is_left_persistent(MPI_Request request);

extern constinit std::atomic<int> g_left_persistent;
inline bool any_left_persistent() { return g_left_persistent.load(std::memory_order_relaxed) > 0; }
#endif

}  // namespace carillon::shim
