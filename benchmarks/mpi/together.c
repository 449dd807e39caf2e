/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "together.h"

#include <float.h>
#include <sched.h>

#include "measure.h"

/* From what rank 0 says until the first call, and the pitch: all hear of it before. */
static const double kLeadUs = 100;
static const double kMostBatchUs = 50000;
/* More than other processes keep a core for. */
static const double kMostPitchUs = 100000;

int can_begin_together(void) {
  MPI_Comm near;
  int ranks = 0, near_ranks = 0;
  cpu_set_t mine, all;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  PMPI_Comm_size(near, &near_ranks);
  PMPI_Comm_free(&near);
  if (sched_getaffinity(0, sizeof(mine), &mine) != 0) CPU_ZERO(&mine);
  PMPI_Allreduce(&mine, &all, sizeof(mine), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  return near_ranks == ranks && CPU_COUNT(&all) >= ranks;
}

/* took_us[i]: from call i's beginning to its end on this rank; DBL_MAX if this rank came too late.
 */
static void run_on_time(const struct collective* collective, const struct call* call,
                        enum side side, int calls, int fresh, double pitch_us, double* took_us) {
  if (fresh) call_rewrite_input(collective, call, 0);
  PMPI_Barrier(MPI_COMM_WORLD);
  double first_us = clock_us() + kLeadUs + pitch_us;
  PMPI_Bcast(&first_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int i = 0; i < calls; ++i) {
    if (fresh && i > 0) call_rewrite_input(collective, call, i);
    const double begin_us = first_us + i * pitch_us;
    const int late = clock_us() >= begin_us;
    while (clock_us() < begin_us) {
    }
    call_run(collective, call, side);
    took_us[i] = late ? DBL_MAX : clock_us() - begin_us;
  }
}

double run_together(const struct collective* collective, const struct call* call, enum side side,
                    int calls, int fresh, double* pitch_us, long* made) {
  static double mine[MAX_BATCH_CALLS], slowest[MAX_BATCH_CALLS];
  const double most_us = kMostPitchUs > 16 * *pitch_us ? kMostPitchUs : 16 * *pitch_us;
  for (; *pitch_us <= most_us; *pitch_us *= 2) {
    const double room = kMostBatchUs / *pitch_us;
    const int most = calls < MAX_BATCH_CALLS ? calls : MAX_BATCH_CALLS;
    const int now = most < room ? most : room < 1 ? 1 : (int)room;
    run_on_time(collective, call, side, now, fresh, *pitch_us, mine);
    *made += now;
    PMPI_Allreduce(mine, slowest, now, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    int in_time = 0;
    for (int i = 0; i < now; ++i) {
      if (slowest[i] < DBL_MAX) slowest[in_time++] = slowest[i];
    }
    if (in_time > 0 && in_time >= now / 2) return quantile(slowest, in_time, 0.5);
  }
  return -1;
}
