/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and sums of bare loops: what a compiler makes of them for this processor.
 */
#ifndef CARILLON_BENCH_BARE_COPIES_H
#define CARILLON_BENCH_BARE_COPIES_H

#include <stddef.h>

/* As memcpy. */
void copy_plain(void* to, const void* from, size_t bytes);
/* By vectors, from 16 KiB on four parts side by side, which is quicker where they come from memory.
 */
void copy_by_parts(void* to, const void* from, size_t bytes);
/* Past the writer's caches; it is there for who sees what is stored later with release. */
void copy_past_caches(void* to, const void* from, size_t bytes);

/* out[i] = left[i] + right[i] */
void sum_floats(float* out, const float* left, const float* right, size_t count);
void sum_bytes(unsigned char* out, const unsigned char* left, const unsigned char* right,
               size_t count);

#endif
