// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace carillon {

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t kLine = 64;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // Whole lines from a line's begin on: such a store is aligned, and lines go out whole.
  std::size_t before = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (before > bytes) before = bytes;
  copy_memory(out, in, before);
  std::size_t left = bytes - before;
  out += before;
  in += before;
  for (; left >= kLine; left -= kLine, out += kLine, in += kLine) {
    const auto* const line = reinterpret_cast<const __m128i*>(in);
    const __m128i a = _mm_loadu_si128(line), b = _mm_loadu_si128(line + 1);
    const __m128i c = _mm_loadu_si128(line + 2), d = _mm_loadu_si128(line + 3);
    auto* const there = reinterpret_cast<__m128i*>(out);
    _mm_stream_si128(there, a);
    _mm_stream_si128(there + 1, b);
    _mm_stream_si128(there + 2, c);
    _mm_stream_si128(there + 3, d);
  }
  copy_memory(out, in, left);
  _mm_sfence();  // a store with release alone does not wait for such stores
#else
  copy_memory(to, from, bytes);
#endif
}

void copy_by_vectors(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  for (; bytes >= kLine; bytes -= kLine, out += kLine, in += kLine) {
    std::memcpy(out, in, kLine);
    asm volatile("" ::: "memory");  // or it becomes a memcpy of all
  }
  copy_memory(out, in, bytes);
}

}  // namespace carillon
