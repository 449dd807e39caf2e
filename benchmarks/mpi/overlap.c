/* SPDX-License-Identifier: Apache-2.0 */
#include "overlap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WARM_UP_CALLS = 2, MIN_BATCHES = 7, MAX_BATCHES = 201 };
static const double kBatchSeconds = 0.005;

static double rounds_per_us = 0;
static volatile double result; /* has the compiler keep the work */

static void work(double rounds) {
  double value = 1.0;
  for (double i = 0; i < rounds; ++i) value = value * 0.999 + 0.5;
  result = value;
}

/* The fastest of some trials: in the others something else had the core. */
static void learn_speed(void) {
  enum { TRIALS = 20 };
  const double rounds = 200000;
  double least_us = 0;
  for (int i = 0; i < TRIALS; ++i) {
    const double start = now_us();
    work(rounds);
    const double took_us = now_us() - start;
    if (i == 0 || took_us < least_us) least_us = took_us;
  }
  rounds_per_us = rounds / least_us;
}

/* Of all cores, by all programs, as the kernel counts. */
struct ticks {
  double idle, all;
};

static struct ticks ticks_now(void) {
  /* "cpu user nice system idle iowait irq softirq steal": one that is not there counts nothing. */
  enum { COLUMNS = 8, IDLE = 3, IOWAIT = 4 };
  unsigned long long of[COLUMNS] = {0};
  struct ticks ticks = {0, 0};
  FILE* const file = fopen("/proc/stat", "r");
  if (file == NULL) return ticks;
  if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &of[0], &of[1], &of[2], &of[3],
             &of[4], &of[5], &of[6], &of[7]) < 1) {
    memset(of, 0, sizeof of);
  }
  fclose(file);
  for (int i = 0; i < COLUMNS; ++i) ticks.all += (double)of[i];
  ticks.idle = (double)(of[IDLE] + of[IOWAIT]);
  return ticks;
}

/* Sums over the calls of a batch on this rank. */
struct times {
  double call_us, start_us, compute_us;
};

static void compute_with_tests(double rounds, int tests, MPI_Request* request, enum side side) {
  for (int i = 0; i < tests; ++i) {
    work(rounds / (tests + 1));
    test_for(request, side);
  }
  work(rounds / (tests + 1));
}

static struct times run_calls(const struct collective* collective, const struct call* call,
                              enum side side, int calls, double rounds, int tests) {
  struct times sum = {0, 0, 0};
  for (int i = -WARM_UP_CALLS; i < calls; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    bench_barrier(side);
    const double begin_us = now_us();
    collective->start(call, side, &request);
    const double started_us = now_us();
    if (rounds > 0) compute_with_tests(rounds, tests, &request, side);
    const double computed_us = now_us();
    wait_for(&request, side);
    const double end_us = now_us();
    if (i < 0) continue;
    sum.call_us += end_us - begin_us;
    sum.start_us += started_us - begin_us;
    sum.compute_us += computed_us - started_us;
  }
  bench_barrier(side);
  return sum;
}

static double slowest(double mine) {
  double all = 0;
  PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

/* The computation alone, on all ranks at once. */
static double compute_alone(int calls, double rounds) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double begin_us = now_us();
  for (int i = 0; i < calls; ++i) work(rounds);
  return slowest((now_us() - begin_us) / calls);
}

/* Adds to `busy` how the cores spent the part with both. */
static struct overlap run_batch(const struct collective* collective, const struct call* call,
                                enum side side, int calls, int tests, struct ticks* busy) {
  struct overlap one;
  const struct times pure = run_calls(collective, call, side, calls, 0, 0);
  one.of[PURE_US] = slowest(pure.call_us / calls);
  one.of[START_US] = slowest(pure.start_us / calls);
  const double rounds = one.of[PURE_US] * rounds_per_us;
  one.of[COMPUTE_US] = compute_alone(calls, rounds);
  const struct ticks before = ticks_now();
  const struct times both = run_calls(collective, call, side, calls, rounds, tests);
  const struct ticks after = ticks_now();
  busy->idle += after.idle - before.idle;
  busy->all += after.all - before.all;
  one.of[TOTAL_US] = slowest(both.call_us / calls);
  const double rest_us = slowest((both.call_us - both.compute_us) / calls);
  const double hidden = 100 * (1 - rest_us / one.of[PURE_US]);
  one.of[OVERLAP_PERCENT] = hidden < 0 ? 0 : hidden;
  one.of[OVER_LONGER] = one.of[TOTAL_US] / fmax(one.of[PURE_US], one.of[COMPUTE_US]);
  return one;
}

/* How many calls make a batch, and how long one call with all that belongs to it takes. */
static int plan_calls(const struct collective* collective, const struct call* call, enum side side,
                      double* call_seconds) {
  enum { CALLS = 3, PARTS = 3 }; /* pure, computation, both */
  const double us = slowest(run_calls(collective, call, side, CALLS, 0, 0).call_us / CALLS);
  *call_seconds = PARTS * us / 1e6;
  const double calls = kBatchSeconds * 1e6 / us;
  return calls < 1 ? 1 : calls > MAX_BATCH_CALLS ? MAX_BATCH_CALLS : (int)calls;
}

static struct overlap medians(const struct overlap* batches, int count) {
  double values[MAX_BATCHES];
  struct overlap median;
  for (int figure = 0; figure < OVERLAP_FIGURES; ++figure) {
    for (int i = 0; i < count; ++i) values[i] = batches[i].of[figure];
    median.of[figure] = quantile(values, count, 0.5);
  }
  return median;
}

void measure_overlap(const struct collective* collective, const struct call* call,
                     const struct effort* effort, int tests, struct overlaps* overlaps) {
  static struct overlap batch[2][MAX_BATCHES];
  struct ticks busy[2] = {{0, 0}, {0, 0}};
  int calls[2];
  double seconds = 0;
  if (rounds_per_us == 0) learn_speed();
  for (int side = NATIVE; side <= CARILLON; ++side) {
    double call_seconds = 0;
    calls[side] = plan_calls(collective, call, (enum side)side, &call_seconds);
    seconds += (calls[side] + WARM_UP_CALLS) * call_seconds;
  }
  int batches = (int)(effort->seconds / seconds);
  if (batches < MIN_BATCHES) batches = MIN_BATCHES;
  if (batches > MAX_BATCHES) batches = MAX_BATCHES;
  if (effort->iterations > 0) {
    if (batches > effort->iterations) batches = effort->iterations;
    calls[NATIVE] = calls[CARILLON] = (effort->iterations + batches - 1) / batches;
  }
  for (int i = 0; i < batches; ++i) {
    for (int turn = 0; turn < 2; ++turn) {
      const enum side side = (turn + i) % 2 == 0 ? NATIVE : CARILLON;
      batch[side][i] = run_batch(collective, call, side, calls[side], tests, &busy[side]);
    }
  }
  for (int side = NATIVE; side <= CARILLON; ++side) {
    overlaps->side[side] = medians(batch[side], batches);
    /* The kernel's count of the time without work may go back a little. */
    const double idle = busy[side].all > 0 ? busy[side].idle / busy[side].all : 1;
    overlaps->busy_percent[side] = 100 * (1 - fmin(fmax(idle, 0), 1));
  }
  overlaps->batches = batches;
  overlaps->carillon_calls = (long)batches * calls[CARILLON];
}
