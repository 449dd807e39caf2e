// SPDX-License-Identifier: Apache-2.0
//
// Open MPI makes its own progress in all its functions that wait, and calls there whoever has asked
// to be called. So what is in flight moves on while the program waits in a function of the host
// that carillon does not see: a window's, a file's. Handles are completed, and teams made, in
// carillon's own functions only.
#pragma once

#include <atomic>

namespace carillon::shim {

extern constinit std::atomic<bool> g_called_by_host;
[[gnu::cold]] void ask_host_to_call();

/// Before something is in flight: from then on the host calls.
inline void be_called_by_host() {
#ifdef OPEN_MPI
  if (!g_called_by_host.load(std::memory_order_relaxed)) [[unlikely]]
    ask_host_to_call();
#endif
}

/// At the end, before carillon's contexts go.
void be_called_no_more();

}  // namespace carillon::shim
