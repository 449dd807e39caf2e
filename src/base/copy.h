// SPDX-License-Identifier: Apache-2.0
//
// Copying memory, around a trap of memcpy.
//
// On processors of AMD's Zen 3 and 4 a long memcpy (REP MOVSB in glibc, from some 2 KiB on) takes
// twenty-five times as long if its destination lies 1 to 31 bytes behind its source within a page
// (glibc bug 30994). That is where malloc puts long buffers, 16 bytes into a page, when they are
// copied to from the beginning of one: the usual case of a receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace carillon {

/// Whether memcpy could be that slow.
inline bool copies_slowly(const void* to, const void* from) {
  constexpr std::uintptr_t kPage = 4096, kBehind = 31;
  const std::uintptr_t apart =
      reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  return apart % kPage - 1 < kBehind;
}

/// As memcpy; of no bytes, pointers may be null.
inline void copy_memory(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kPiece = 1024;  // short enough for memcpy's other ways on any processor
  if (bytes > kPiece && copies_slowly(to, from)) [[unlikely]] {
    auto* const end = static_cast<const std::byte*>(from) + bytes;
    auto* out = static_cast<std::byte*>(to);
    for (auto* in = static_cast<const std::byte*>(from); in != end;) {
      const auto left = static_cast<std::size_t>(end - in);
      std::size_t piece = left < kPiece ? left : kPiece;
      // A copy that the compiler knows to be short may become REP MOVS, too: it is not to know.
      asm("" : "+r"(piece));
      std::memcpy(out, in, piece);
      in += piece;
      out += piece;
    }
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

/// Whether this processor's stores can go past its caches.
#if defined(__SSE2__)
inline constexpr bool kCopiesPastCaches = true;
#else
inline constexpr bool kCopiesPastCaches = false;
#endif

/// As copy_memory, but what is written goes past the caches to memory, and is there, for who sees
/// what this thread stores later with release: readers far from the writer's cache have it sooner
/// from there.
void copy_past_caches(void* to, const void* from, std::size_t bytes);

/// Blocks of so many bytes and more are read as so many parts side by side where they come from
/// another core or from memory.
inline constexpr std::size_t kLeastSideBySide = 16384, kSideBySide = 4;
/// Bytes of each of the parts, a multiple of `unit`; what is left of the block comes after them.
constexpr std::size_t part_side_by_side(std::size_t bytes, std::size_t unit) {
  return bytes / kSideBySide / unit * unit;
}

/// As memcpy, of memory that does not overlap, by vectors whatever its length.
void copy_by_vectors(void* to, const void* from, std::size_t bytes);

/// As two copy_memory from one place, which is read once. No two of the three overlap. By vectors,
/// whatever the length; or by copy_memory, piece by piece: lines of `to` that another core has read
/// come back sooner to the one instruction that memcpy is.
void copy_to_both_by_vectors(void* to, void* also, const void* from, std::size_t bytes);
void copy_to_both(void* to, void* also, const void* from, std::size_t bytes);

/// As copy_memory, for messages. Short copies are most of the traffic of small collectives: a call
/// would cost as much again.
inline void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else {
    copy_memory(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace carillon
