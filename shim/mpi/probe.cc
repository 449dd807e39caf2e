// SPDX-License-Identifier: Apache-2.0
//
// Questions of the program: has a message come, or a part of it, is the exposure epoch over? It may
// ask one once, right after a collective. The MPI's own collectives take in what arrived before
// them, so there one question is enough; carillon's do not, so the question is repeated. It may
// also ask again and again, and the answer may depend on who waits for this process in a collective
// that it has started: so each question makes progress with what is in flight.
#include <atomic>

#include "communicator.h"
#include "errors.h"
#include "poll.h"

namespace carillon::shim {

constinit std::atomic<bool> g_collective_since_probe = false;

namespace {

// Each one lets the host take in a message or so.
constexpr int kRepetitions = 100;

template <typename Ask>
int ask_until_sure(const int* flag, Ask ask) {
  advance_flights();
  int status = ask();
  if (status != MPI_SUCCESS || *flag != 0 ||
      !g_collective_since_probe.load(std::memory_order_relaxed)) {
    return status;
  }
  for (int i = 0; i < kRepetitions && status == MPI_SUCCESS && *flag == 0; ++i) {
    advance_flights();
    status = ask();
  }
  if (*flag == 0) g_collective_since_probe.store(false, std::memory_order_relaxed);
  return status;
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::advance_flights;
using carillon::shim::any_flights;
using carillon::shim::ask_until_sure;
using carillon::shim::call_newer;
using carillon::shim::host;
using carillon::shim::poll_until;

extern "C" {

CARILLON_EXPORT int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* state) {
  return ask_until_sure(flag, [&] { return host().Iprobe(source, tag, comm, flag, state); });
}

CARILLON_EXPORT int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                                MPI_Status* state) {
  return ask_until_sure(flag,
                        [&] { return host().Improbe(source, tag, comm, flag, message, state); });
}

CARILLON_EXPORT int MPI_Win_test(MPI_Win win, int* flag) {
  return ask_until_sure(flag, [&] { return host().Win_test(win, flag); });
}

CARILLON_EXPORT int MPI_Win_wait(MPI_Win win) {
  if (!any_flights()) return host().Win_wait(win);
  int done = 0;
  return poll_until(&done, [&] { return host().Win_test(win, &done); });
}

CARILLON_EXPORT int MPI_Parrived(MPI_Request request, int partition, int* flag) {
  advance_flights();
  return call_newer(host().Parrived, request, partition, flag);
}

}  // extern "C"
