/* SPDX-License-Identifier: Apache-2.0 */
#include "bare_copies.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#define FOR_THIS_PROCESSOR __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define FOR_THIS_PROCESSOR
#endif

enum { LINE = 64, PARTS = 4, LEAST_BY_PARTS = 16384 };

void copy_plain(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }

FOR_THIS_PROCESSOR void copy_by_parts(void* to, const void* from, size_t bytes) {
  char* const out = to;
  const char* const in = from;
  const size_t parts = bytes >= LEAST_BY_PARTS ? PARTS : 1;
  const size_t part = bytes / parts / LINE * LINE;
  for (size_t at = 0; at < part; at += LINE) {
    for (size_t i = 0; i < parts; ++i) {
      memcpy(out + i * part + at, in + i * part + at, LINE);
      __asm__ volatile("" ::: "memory"); /* or it becomes a memcpy of all */
    }
  }
  memcpy(out + parts * part, in + parts * part, bytes - parts * part);
}

void copy_past_caches(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
  char* out = to;
  const char* in = from;
  size_t before = (LINE - (uintptr_t)to % LINE) % LINE;
  if (before > bytes) before = bytes;
  memcpy(out, in, before);
  out += before, in += before, bytes -= before;
  for (; bytes >= LINE; bytes -= LINE, out += LINE, in += LINE) {
    for (int i = 0; i < 4; ++i) {
      _mm_stream_si128((__m128i*)out + i, _mm_loadu_si128((const __m128i*)in + i));
    }
  }
  memcpy(out, in, bytes);
  _mm_sfence();
#else
  memcpy(to, from, bytes);
#endif
}

FOR_THIS_PROCESSOR void sum_floats(float* out, const float* left, const float* right,
                                   size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = left[i] + right[i];
}

FOR_THIS_PROCESSOR void sum_bytes(unsigned char* out, const unsigned char* left,
                                  const unsigned char* right, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = (unsigned char)(left[i] + right[i]);
}
