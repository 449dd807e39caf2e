/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor time that this process has spent in sched_yield, by whichever library: a rank that
 * waits yields, and takes all of a core that nobody else wants. What is left of its time is work.
 */
#ifndef YIELDS_H
#define YIELDS_H

/* From now on, or no longer. Counted, a yield is three system calls instead of one: calls that are
 * timed are not counted. */
void count_yields(int on);
/* In seconds, of all threads, as far as counted; reading the clock for it is part of it. */
double yield_seconds(void);

#endif
