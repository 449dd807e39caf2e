/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <stdlib.h>
#include <time.h>

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
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void warm_up(const struct collective* collective, const struct call* call, enum side side,
                    int calls) {
  for (int i = 0; i < WARM_UP_CALLS && i < calls; ++i) {
    bench_barrier(side);
    collective->run(call, side);
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
    collective->run(call, side);
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

static void summarise(double* native, double* carillon, int batches, struct figures* figures) {
  double ratios[MAX_BATCHES];
  for (int i = 0; i < batches; ++i) ratios[i] = native[i] / carillon[i];
  figures->batches = batches;
  figures->speedup = quantile(ratios, batches, 0.5);
  figures->speedup_low = quantile(ratios, batches, 0.25);
  figures->speedup_high = quantile(ratios, batches, 0.75);
  figures->native_us = quantile(native, batches, 0.5);
  figures->carillon_us = quantile(carillon, batches, 0.5);
}

/* Batches for both sides: what fits into the effort, the same on all ranks. pitch_us: how far
 * apart calls may begin, of which each has ended before the next. */
static int plan(const struct collective* collective, const struct call* call,
                const struct effort* effort, int calls[2], double pitch_us[2]) {
  double seconds[2];
  for (int side = NATIVE; side <= CARILLON; ++side) {
    calls[side] = plan_batch(collective, call, (enum side)side, effort->fresh, &seconds[side]);
    pitch_us[side] = 1 + 1.5e6 * seconds[side] / calls[side];
    if (effort->together) seconds[side] = pitch_us[side] * 1e-6 * calls[side];
  }
  int batches = (int)(effort->seconds / (seconds[NATIVE] + seconds[CARILLON]));
  if (batches < MIN_BATCHES) batches = MIN_BATCHES;
  if (batches > MAX_BATCHES) batches = MAX_BATCHES;
  if (effort->iterations > 0) {
    if (batches > effort->iterations) batches = effort->iterations;
    calls[NATIVE] = calls[CARILLON] = (effort->iterations + batches - 1) / batches;
  }
  return batches;
}

int measure(const struct collective* collective, const struct call* call,
            const struct effort* effort, struct figures* figures) {
  double mine[2][MAX_BATCHES], slowest[2][MAX_BATCHES], pitch_us[2];
  long made[2] = {0, 0};
  int calls[2];
  const int batches = plan(collective, call, effort, calls, pitch_us);
  for (int i = 0; i < batches; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      /* native carillon, carillon native, ...: a drift of the machine cancels out */
      const enum side side = (turn + i) % 2 == 0 ? NATIVE : CARILLON;
      if (!effort->together) {
        mine[side][i] = run_batch(collective, call, side, calls[side], effort->fresh);
        made[side] += calls[side];
        continue;
      }
      warm_up(collective, call, side, calls[side]);
      mine[side][i] = run_together(collective, call, side, calls[side], effort->fresh,
                                   &pitch_us[side], &made[side]);
      if (mine[side][i] < 0) return 0;
    }
  }
  for (int side = NATIVE; side <= CARILLON; ++side) {
    PMPI_Allreduce(mine[side], slowest[side], batches, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  figures->carillon_calls = made[CARILLON];
  summarise(slowest[NATIVE], slowest[CARILLON], batches, figures);
  return 1;
}
