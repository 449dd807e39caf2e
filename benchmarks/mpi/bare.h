/* SPDX-License-Identifier: Apache-2.0
 *
 * What a collective of two ranks takes without a library: a loop that moves the same bytes through
 * shared memory, or has the kernel copy them, and does nothing else: no matching, no choice, no
 * length or communicator that could be another. No library can be much faster, so a row's native
 * time by this one is about the most that there is to gain (`carillon bench --bare`).
 *
 * Which way is the fastest depends on the length and on how far apart the cores are at the time;
 * there are several, the same as a library has, and who measures takes the best.
 */
#ifndef CARILLON_BENCH_BARE_H
#define CARILLON_BENCH_BARE_H

#include "cases.h"

/* Of short messages, which come with their number in one cache line: when the one who waits looks
 * for the first time. Of long ones: who copies, and how. */
enum { BARE_MOST_WAYS = 5 };

/* Whether there is a bare loop of it: barrier, bcast, reduce, allreduce, allgather and alltoall. */
int bare_can(const struct collective* collective);

/* Collective, once. 0, on all: these are not two ranks of one machine. */
int bare_begin(void);
void bare_end(void);

/* How many ways such a call has, and the one that the next calls go. The same on both ranks. */
int bare_ways(const struct collective* collective, const struct call* call);
void bare_go(const struct collective* collective, const struct call* call, int way);

/* As the collective's run and as a barrier before it. */
void bare_run(const struct collective* collective, const struct call* call);
void bare_barrier(void);

#endif
