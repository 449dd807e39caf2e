/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdlib.h>
#include <time.h>

#include "bare.h"
#include "together.h"

enum { WARM_UP_CALLS = 3, MIN_BATCHES = 7, MAX_BATCHES = 201 };
static const double kBatchSeconds = 0.002;

static int use_counter = 0;
static double us_per_tick = 0;

#if defined(__x86_64__)
#include <x86intrin.h>
static inline double ticks(void) { return (double)__rdtsc(); }
static const int kCommonTicks = 1;
#else
static inline double ticks(void) { return PMPI_Wtime(); }
static const int kCommonTicks = 0; /* they may begin elsewhere in each process */
#endif

void measure_with_counter(void) {
  const double start = PMPI_Wtime(), first = ticks();
  while (PMPI_Wtime() - start < 0.02) {
  }
  us_per_tick = (PMPI_Wtime() - start) * 1e6 / (ticks() - first);
  PMPI_Bcast(&us_per_tick, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  use_counter = 1;
}

double now_us(void) { return use_counter ? ticks() * us_per_tick : PMPI_Wtime() * 1e6; }

double clock_us(void) {
  if (use_counter && kCommonTicks) return ticks() * us_per_tick;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

void bench_barrier(enum side side) {
  if (side == NATIVE) {
    PMPI_Barrier(MPI_COMM_WORLD);
  } else if (side == CARILLON) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    bare_barrier();
  }
}

static void warm_up(const struct collective* collective, const struct call* call, enum side side,
                    int calls) {
  for (int i = 0; i < WARM_UP_CALLS && i < calls; ++i) {
    bench_barrier(side);
    call_run(collective, call, side);
  }
}

/* The mean time of `calls` calls on this rank, in microseconds. */
static double run_batch(const struct collective* collective, const struct call* call,
                        enum side side, int calls, int fresh) {
  warm_up(collective, call, side, calls);
  double sum_us = 0;
  for (int i = 0; i < calls; ++i) {
    if (fresh) call_rewrite_input(collective, call, i);
    bench_barrier(side);
    const double start_us = now_us();
    call_run(collective, call, side);
    sum_us += now_us() - start_us;
  }
  bench_barrier(side);
  return sum_us / calls;
}

/* What a batch takes, as the slowest rank has it. */
static double time_batch(const struct collective* collective, const struct call* call,
                         enum side side, int calls, int fresh) {
  const double start = PMPI_Wtime();
  run_batch(collective, call, side, calls, fresh);
  const double mine = PMPI_Wtime() - start;
  double seconds = 0;
  PMPI_Allreduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

/* How many calls fit into kBatchSeconds, and how long a batch then is. One that was long may have
 * been so once, as memory was used for the first time. */
static int plan_batch(const struct collective* collective, const struct call* call, enum side side,
                      int fresh, double* batch_seconds) {
  int calls = 1;
  double seconds = 0;
  for (;;) {
    for (int i = 0; i == 0 || (i < 3 && seconds >= kBatchSeconds / 2); ++i) {
      const double now = time_batch(collective, call, side, calls, fresh);
      if (i == 0 || now < seconds) seconds = now;
    }
    if (seconds >= kBatchSeconds / 2 || calls >= MAX_BATCH_CALLS) break;
    calls = calls * 4 < MAX_BATCH_CALLS ? calls * 4 : MAX_BATCH_CALLS;
  }
  *batch_seconds = seconds;
  return calls;
}

static int compare(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

double quantile(double* values, int count, double part) {
  qsort(values, (size_t)count, sizeof(double), compare);
  const double place = part * (count - 1);
  const int below = (int)place;
  const int above = below + 1 < count ? below + 1 : below;
  return values[below] + (values[above] - values[below]) * (place - below);
}

/* Returns the median of the ratios, and their quartiles. */
static double compare_batches(const double* native, const double* other, int batches, double* low,
                              double* high) {
  double ratios[MAX_BATCHES];
  for (int i = 0; i < batches; ++i) ratios[i] = native[i] / other[i];
  *low = quantile(ratios, batches, 0.25);
  *high = quantile(ratios, batches, 0.75);
  return quantile(ratios, batches, 0.5);
}

/* Batches for both sides: what fits into the effort, the same on all ranks. pitch_us: how far
 * apart calls may begin, of which each has ended before the next. The bare loop, which goes each of
 * its ways, is planned as carillon's side. */
static int plan(const struct collective* collective, const struct call* call,
                const struct effort* effort, int bare_ways_tried, int calls[3],
                double pitch_us[3]) {
  double seconds[2];
  for (int side = NATIVE; side <= CARILLON; ++side) {
    calls[side] = plan_batch(collective, call, (enum side)side, effort->fresh, &seconds[side]);
    pitch_us[side] = 1 + 1.5e6 * seconds[side] / calls[side];
    if (effort->together) seconds[side] = pitch_us[side] * 1e-6 * calls[side];
  }
  const double all = seconds[NATIVE] + (1 + bare_ways_tried) * seconds[CARILLON];
  int batches = (int)(effort->seconds / all);
  if (batches < MIN_BATCHES) batches = MIN_BATCHES;
  if (batches > MAX_BATCHES) batches = MAX_BATCHES;
  if (effort->iterations > 0) {
    if (batches > effort->iterations) batches = effort->iterations;
    calls[NATIVE] = calls[CARILLON] = (effort->iterations + batches - 1) / batches;
  }
  calls[BARE] = calls[CARILLON];
  pitch_us[BARE] = pitch_us[CARILLON];
  return batches;
}

/* Of this rank, in microseconds; negative: some rank was never in time. */
static double measure_batch(const struct collective* collective, const struct call* call,
                            enum side side, const struct effort* effort, int calls,
                            double* pitch_us, long* made) {
  if (!effort->together) {
    *made += calls;
    return run_batch(collective, call, side, calls, effort->fresh);
  }
  warm_up(collective, call, side, calls);
  return run_together(collective, call, side, calls, effort->fresh, pitch_us, made);
}

int measure(const struct collective* collective, const struct call* call,
            const struct effort* effort, struct figures* figures) {
  static double mine[2 + BARE_MOST_WAYS][MAX_BATCHES], slowest[2 + BARE_MOST_WAYS][MAX_BATCHES];
  double pitch_us[3], low = 0, high = 0;
  long made[3] = {0, 0, 0};
  int calls[3];
  const int ways = effort->bare && bare_can(collective) ? bare_ways(collective, call) : 0;
  const int batches = plan(collective, call, effort, ways, calls, pitch_us);
  for (int i = 0; i < batches; ++i) {
    for (int turn = 0; turn < 2 + ways; ++turn) {
      /* native carillon, carillon native, ...: a drift of the machine cancels out */
      const int row = turn < 2 ? (turn + i) % 2 : turn;
      const enum side side = row < 2 ? (enum side)row : BARE;
      if (side == BARE) bare_go(collective, call, row - BARE);
      mine[row][i] =
          measure_batch(collective, call, side, effort, calls[side], &pitch_us[side], &made[side]);
      if (mine[row][i] < 0) return 0;
    }
  }
  for (int row = 0; row < 2 + ways; ++row) {
    PMPI_Allreduce(mine[row], slowest[row], batches, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  for (int row = BARE + 1; row < 2 + ways; ++row) {
    for (int i = 0; i < batches; ++i) {
      if (slowest[row][i] < slowest[BARE][i]) slowest[BARE][i] = slowest[row][i];
    }
  }
  figures->carillon_calls = made[CARILLON];
  figures->batches = batches;
  figures->room =
      ways > 0 ? compare_batches(slowest[NATIVE], slowest[BARE], batches, &low, &high) : 0;
  figures->bare_us = ways > 0 ? quantile(slowest[BARE], batches, 0.5) : 0;
  figures->speedup = compare_batches(slowest[NATIVE], slowest[CARILLON], batches,
                                     &figures->speedup_low, &figures->speedup_high);
  figures->native_us = quantile(slowest[NATIVE], batches, 0.5);
  figures->carillon_us = quantile(slowest[CARILLON], batches, 0.5);
  return 1;
}
