// SPDX-License-Identifier: Apache-2.0
//
// A program may take the MPI's functions out of its library by itself: by dlsym, as Julia does and
// Python's ctypes, or because it is opened with RTLD_DEEPBIND. Then no call comes here, and it runs
// as without carillon. Who asked for an account of its calls is told so.
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "host.h"
#include "process.h"
#include "settings.h"

namespace carillon::shim {
namespace {

bool is_first_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* const rank = std::getenv(name)) return std::string_view(rank) == "0";
  }
  return true;
}

// When the process ends.
[[gnu::destructor]] void say_that_nothing_came() {
  if (g_host.ready.load(std::memory_order_relaxed)) return;
  const Settings settings = read_settings();
  if (settings.stats.empty() && !settings.check && settings.record.empty()) return;
  if (!is_first_rank() || !host_has_begun()) return;
  say("none of the program's calls of MPI came here: it takes the MPI's functions out of their "
      "library by itself (dlsym, ctypes, RTLD_DEEPBIND)");
}

}  // namespace
}  // namespace carillon::shim
