// SPDX-License-Identifier: Apache-2.0
#include "base/copy.h"

#include <algorithm>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace carillon {
namespace {

constexpr std::size_t kLine = 64;

// A line's bytes in registers: two where those are as wide, else four. memcpy of a line, or of an
// array, becomes loads and stores of 16 bytes whatever the processor has.
struct Line {
  using Half = unsigned char __attribute__((vector_size(kLine / 2)));
  Half first, second;

  [[gnu::always_inline]] void load(const std::byte* from) {
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&second, from + sizeof first, sizeof second);
  }
  [[gnu::always_inline]] void store(std::byte* to) const {
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + sizeof first, &second, sizeof second);
  }
};

// Of long blocks the parts are copied side by side: what comes from memory comes from several pages
// at once then, and processors fetch ahead in each.
[[gnu::always_inline]] inline void copy_lines(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const auto copy_line = [&](std::size_t at) {
    Line line;
    line.load(in + at);
    line.store(out + at);
    asm volatile("" ::: "memory");  // or it becomes a memcpy of all
  };
  std::size_t done = 0;
  if (bytes >= kLeastSideBySide) {
    const std::size_t part = part_side_by_side(bytes, kLine);
    for (std::size_t at = 0; at < part; at += kLine) {
      for (std::size_t i = 0; i < kSideBySide; ++i) copy_line(i * part + at);
    }
    done = kSideBySide * part;
  }
  for (; bytes - done >= kLine; done += kLine) copy_line(done);
  copy_memory(out + done, in + done, bytes - done);
}

[[gnu::always_inline]] inline void copy_lines_to_both(void* to, void* also, const void* from,
                                                      std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  auto* other = static_cast<std::byte*>(also);
  const auto* in = static_cast<const std::byte*>(from);
  std::size_t done = 0;
  for (; bytes - done >= kLine; done += kLine) {
    Line line;
    line.load(in + done);
    line.store(out + done);
    line.store(other + done);
    asm volatile("" ::: "memory");  // or it becomes two memcpy
  }
  copy_memory(out + done, in + done, bytes - done);
  copy_memory(other + done, in + done, bytes - done);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void copy_to_both_by_wide_vectors(void* to, void* also, const void* from,
                                                          std::size_t bytes) {
  copy_lines_to_both(to, also, from, bytes);
}

[[gnu::target("avx2")]] void copy_by_wide_vectors(void* to, const void* from, std::size_t bytes) {
  copy_lines(to, from, bytes);
}
#endif

}  // namespace

void copy_past_caches(void* to, const void* from, std::size_t bytes) {
#if defined(__SSE2__)
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
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return copy_by_wide_vectors(to, from, bytes);
#endif
  copy_lines(to, from, bytes);
}

void copy_to_both_by_vectors(void* to, void* also, const void* from, std::size_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return copy_to_both_by_wide_vectors(to, also, from, bytes);
#endif
  copy_lines_to_both(to, also, from, bytes);
}

void copy_to_both(void* to, void* also, const void* from, std::size_t bytes) {
  constexpr std::size_t kPiece = 8192;  // stays in the nearest cache
  for (std::size_t done = 0; done < bytes; done += kPiece) {
    const std::size_t piece = std::min(kPiece, bytes - done);
    copy_memory(static_cast<std::byte*>(to) + done, static_cast<const std::byte*>(from) + done,
                piece);
    copy_memory(static_cast<std::byte*>(also) + done, static_cast<const std::byte*>(from) + done,
                piece);
  }
}

}  // namespace carillon
