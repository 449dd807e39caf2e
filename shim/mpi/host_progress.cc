// SPDX-License-Identifier: Apache-2.0
#include "host_progress.h"

#include "flight.h"
#include "host.h"
#include "thread_cache.h"
#include "world.h"

namespace carillon::shim {

constinit std::atomic<bool> g_called_by_host = false;

namespace {

// How many things have happened: none of the host's.
int move_on() {
  // Where carillon has called the host, it makes progress itself.
  if (!any_flights() || t_cache.depth > 0) return 0;
  const InsideHost guard;
  progress_worlds();
  return 0;
}

// Of Open MPI's libopen-pal, which says so in no header that is installed. An older or newer one
// may lack it.
using Register = int (*)(int (*)());

int call_by_name(const char* name) {
  const auto function = reinterpret_cast<Register>(host_data(name));
  return function == nullptr ? 0 : function(move_on);
}

}  // namespace

void ask_host_to_call() {
  if (!g_called_by_host.exchange(true)) call_by_name("opal_progress_register");
}

void be_called_no_more() {
  if (g_called_by_host.exchange(false)) call_by_name("opal_progress_unregister");
}

}  // namespace carillon::shim
