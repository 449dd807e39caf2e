/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into programs of MPICH with more ranks than cores: a rank that waits gives its core to
 * another one. MPICH over UCX has no setting for it. Without, a rank that waits keeps its core
 * until the kernel takes it, and every message of the tests may take milliseconds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

static unsigned (*progress)(void*);

__attribute__((constructor)) static void find(void) {
  *(void**)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
}

unsigned ucp_worker_progress(void* worker) {
  const unsigned done = progress(worker);
  if (done == 0) sched_yield();
  return done;
}
