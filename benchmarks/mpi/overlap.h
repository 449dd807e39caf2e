/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of a collective's time a computation can hide, as the OSU micro-benchmarks define it:
 *
 *   pure      start it, wait for it
 *   compute   a computation that takes as long as that, alone
 *   total     start it, compute, wait for it
 *   overlap   100 % x (1 - (total - computation within it) / pure), not below 0
 *
 * Of each batch the mean of its calls on the slowest rank; the sides in turn; medians over the
 * batches. The computation is a fixed amount of arithmetic without memory, not a stretch of time:
 * what takes its core away makes it longer.
 */
#ifndef CARILLON_BENCH_OVERLAP_H
#define CARILLON_BENCH_OVERLAP_H

#include "cases.h"
#include "measure.h"

enum overlap_figure {
  PURE_US,
  START_US, /* of that: until the start returned, with nothing to compute */
  COMPUTE_US,
  TOTAL_US,
  OVERLAP_PERCENT,
  OVER_LONGER, /* total / the longer of pure and compute; 1: all is hidden */
  OVERLAP_FIGURES
};
struct overlap {
  double of[OVERLAP_FIGURES];
};

struct overlaps {
  struct overlap side[2];
  double busy_percent[2]; /* of all cores, by all programs, while both were at work */
  int batches;
  long carillon_calls;
};

/* Collective. Every rank gets the same figures. `tests`: MPI_Test is called that often during the
 * computation. */
void measure_overlap(const struct collective* collective, const struct call* call,
                     const struct effort* effort, int tests, struct overlaps* overlaps);

#endif
