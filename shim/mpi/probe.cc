// SPDX-License-Identifier: Apache-2.0
//
// Questions that a program may ask once, right after a collective: has a message come, is the
// exposure epoch over? The MPI's own collectives take in what arrived before them, so there one
// question is enough; carillon's do not, so the question is repeated.
#include <atomic>

#include "communicator.h"
#include "host.h"

namespace carillon::shim {

constinit std::atomic<bool> g_collective_since_probe = false;

namespace {

// Each one lets the host take in a message or so.
constexpr int kRepetitions = 100;

template <typename Ask>
int ask_until_sure(const int* flag, Ask ask) {
  int status = ask();
  if (status != MPI_SUCCESS || *flag != 0 ||
      !g_collective_since_probe.load(std::memory_order_relaxed)) {
    return status;
  }
  for (int i = 0; i < kRepetitions && status == MPI_SUCCESS && *flag == 0; ++i) status = ask();
  if (*flag == 0) g_collective_since_probe.store(false, std::memory_order_relaxed);
  return status;
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::ask_until_sure;
using carillon::shim::host;

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

}  // extern "C"
