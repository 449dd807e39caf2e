/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that all ranks begin at a time agreed on, on the clock that they share, instead of when a
 * barrier lets them go: one rank leaves a barrier before another, and what comes after it is then
 * measured from different beginnings, in one order with one library and in another with the next.
 *
 * Source: the window-based process synchronisation of Hunold and Carpen-Amarie, "MPI Benchmarking
 * Revisited: Experimental Design and Reproducibility" (2015), for ranks that have one clock.
 */
#ifndef CARILLON_BENCH_TOGETHER_H
#define CARILLON_BENCH_TOGETHER_H

#include "cases.h"

/* Have all ranks one clock, and is there a core for each? Collective; the same on every rank. */
int can_begin_together(void);

/* The time from the agreed beginning until the last rank is done, in microseconds: the median of
 * the calls for which all ranks were in time, of `calls` or, where that would be
 * too many or take long, fewer.
 * They begin *pitch_us apart, which grows until at least half are in time; *made grows by how many
 * were made. Collective; the same on every rank. Negative: they never were in time. */
double run_together(const struct collective* collective, const struct call* call, enum side side,
                    int calls, int fresh, double* pitch_us, long* made);

#endif
