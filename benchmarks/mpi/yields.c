/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's own sched_yield stands in front of the C library's for all that is loaded.
 */
#define _GNU_SOURCE
#include "yields.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int counts;
static atomic_llong yields_ns, yields;
static long long clock_ns; /* of one reading of the clock */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Of the calling thread: while another one has the core it stands still. */
static long long cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void measure_clock(void) {
  enum { READINGS = 1000 };
  const long long begin = cpu_ns();
  for (int i = 0; i < READINGS; ++i) cpu_ns();
  clock_ns = (cpu_ns() - begin) / (READINGS + 1);
}

int sched_yield(void) {
  if (!atomic_load_explicit(&counts, memory_order_relaxed)) return (int)syscall(SYS_sched_yield);
  const long long begin = cpu_ns();
  const long status = syscall(SYS_sched_yield);
  atomic_fetch_add_explicit(&yields_ns, cpu_ns() - begin, memory_order_relaxed);
  atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
  return (int)status;
}

void count_yields(int on) {
  pthread_once(&once, measure_clock);
  atomic_store(&counts, on);
}

/* Between the two readings lies what one takes; the other half of each lies outside. */
double yield_seconds(void) {
  return 1e-9 * (double)(atomic_load(&yields_ns) + atomic_load(&yields) * clock_ns);
}
