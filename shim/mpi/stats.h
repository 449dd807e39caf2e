// SPDX-License-Identifier: Apache-2.0
//
// Counts of what was taken and what was left to the host, and why; and how they are told, with the
// sums by communicator (tally.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "call.h"
#include "carillon/carillon.h"
#include "process.h"

namespace carillon::shim {

/// Calls that were left to the host. One writer at a time, unless the program has threads.
extern constinit std::atomic<std::uint64_t> g_left[kCalls][kReasons];
inline void count_left(std::size_t call, Reason reason) {
  add_to(g_left[call][static_cast<std::size_t>(reason)], 1);
}
std::uint64_t left_calls(std::size_t call);
/// Why a call was left, for people.
const char* text_of(Reason reason);
/// How and why the team's alltoallvs were done; of a team that does no more.
void count_decisions(crl_team_h team);
/// Of a context that is about to be destroyed.
void count_traffic(crl_context_h context);

/// Empty: none; "1": rank 0 prints tables on stderr; "json": a line of JSON; else each rank writes
/// <prefix>.<rank>.json.
void set_stats(const std::string& where);
/// In MPI_Finalize.
void print_stats();

}  // namespace carillon::shim
