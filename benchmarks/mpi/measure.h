/* SPDX-License-Identifier: Apache-2.0
 *
 * How it is measured (docs/performance.md): each call between two readings of the clock, a
 * barrier of the same side before it; native and carillon in turn, in batches; of each batch the
 * mean of its calls, on the slowest rank; of the batches the median. Or from a beginning that all
 * ranks have agreed on to the end on the last one, of each batch the median (together.h).
 */
#ifndef CARILLON_BENCH_MEASURE_H
#define CARILLON_BENCH_MEASURE_H

#include "cases.h"

enum { MAX_BATCH_CALLS = 1000 };

struct effort {
  double seconds; /* for one collective at one size, about */
  int iterations; /* calls per side; 0: as many as fit into the seconds */
  int fresh;      /* each rank writes its input anew before every call, outside of the time */
  int together;   /* all ranks begin a call at an agreed time, instead of after a barrier */
  int bare;       /* a bare loop, too, where there is one of the collective (bare.h) */
};

struct figures {
  double native_us, carillon_us;    /* medians over the batches */
  double speedup;                   /* median of the batches' ratios */
  double speedup_low, speedup_high; /* their quartiles */
  /* Of the bare loop, of each batch the fastest way; the native side's time by it. 0: none. */
  double bare_us, room;
  int batches;
  long carillon_calls; /* made through MPI_*, warm-up included */
};

/* Reads the processor's time stamp counter, where there is one, instead of MPI_Wtime: that costs
 * some 10 ns instead of 25. Collective: all ranks get one measure of how fast it goes. */
void measure_with_counter(void);

double now_us(void);
/* The same on all ranks of a machine: the counter, or the kernel's clock. */
double clock_us(void);
void bench_barrier(enum side side);
/* Sorts the values. */
double quantile(double* values, int count, double part);

/* Collective. Every rank gets the same figures; 0: some rank was never in time for agreed
 * beginnings. */
int measure(const struct collective* collective, const struct call* call,
            const struct effort* effort, struct figures* figures);

#endif
