// SPDX-License-Identifier: Apache-2.0
//
// The C library's functions of memory, for a program that has this library loaded first (carillon
// run --shared-heap): large blocks from heap.h, all others from where they would have come.
// operator new and Fortran's allocate call these.
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "heap.h"

#define CARILLON_EXPORT __attribute__((visibility("default")))

// The C library's own, for what is asked for before the next library's functions are known.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace carillon::heap {
namespace {

// Of a malloc that does not say.
std::size_t no_size(void* /*memory*/) { return 0; }
int no_trim(std::size_t /*kept*/) { return 0; }

struct Next {
  void* (*malloc)(std::size_t) = __libc_malloc;
  void* (*calloc)(std::size_t, std::size_t) = __libc_calloc;
  void* (*realloc)(void*, std::size_t) = __libc_realloc;
  void* (*memalign)(std::size_t, std::size_t) = __libc_memalign;
  void* (*aligned_alloc)(std::size_t, std::size_t) = __libc_memalign;
  void (*free)(void*) = __libc_free;
  std::size_t (*usable)(void*) = no_size;
  int (*trim)(std::size_t) = no_trim;
};

constinit Next g_next;
constinit std::atomic<int> g_known = 0;  // 1: being looked up, 2: known

template <typename Function>
void look_up(const char* name, Function* function) {
  if (void* const found = dlsym(RTLD_NEXT, name); found != nullptr) {
    *function = reinterpret_cast<Function>(found);
  }
}

// The dynamic linker calls it before any thread is there, or the first malloc does.
const Next& next() {
  if (g_known.load(std::memory_order_acquire) == 0) {
    g_known.store(1, std::memory_order_relaxed);
    Next found;
    look_up("malloc", &found.malloc);
    look_up("calloc", &found.calloc);
    look_up("realloc", &found.realloc);
    look_up("memalign", &found.memalign);
    look_up("aligned_alloc", &found.aligned_alloc);
    look_up("free", &found.free);
    look_up("malloc_usable_size", &found.usable);
    look_up("malloc_trim", &found.trim);
    g_next = found;
    g_known.store(2, std::memory_order_release);
  }
  return g_next;
}

bool is_large(std::size_t bytes) { return bytes >= kLargeBytes; }

bool is_alignment(std::size_t alignment) { return std::has_single_bit(alignment); }

void* aligned(std::size_t alignment, std::size_t bytes) {
  if (is_large(bytes)) {
    if (void* const memory = allocate(bytes, alignment, false); memory != nullptr) return memory;
  }
  return next().memalign(alignment, bytes);
}

void* moved(void* memory, std::size_t kept, std::size_t bytes) {
  void* const block = malloc(bytes);
  if (block == nullptr) return nullptr;
  std::memcpy(block, memory, std::min(kept, bytes));
  free(memory);
  return block;
}

}  // namespace
}  // namespace carillon::heap

using namespace carillon::heap;

extern "C" {

CARILLON_EXPORT void* malloc(std::size_t bytes) {
  if (is_large(bytes)) [[unlikely]] {
    if (void* const memory = allocate(bytes, 1, false); memory != nullptr) return memory;
  }
  return next().malloc(bytes);
}

CARILLON_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, bytes, &all) && is_large(all)) [[unlikely]] {
    if (void* const memory = allocate(all, 1, true); memory != nullptr) return memory;
  }
  return next().calloc(count, bytes);
}

CARILLON_EXPORT void free(void* memory) {
  if (owns(memory)) [[unlikely]] {
    release(memory);
  } else {
    next().free(memory);
  }
}

// C23's, which in C libraries that have them end in their own free.
CARILLON_EXPORT void free_sized(void* memory, std::size_t /*bytes*/) { free(memory); }
CARILLON_EXPORT void free_aligned_sized(void* memory, std::size_t /*alignment*/,
                                        std::size_t /*bytes*/) {
  free(memory);
}

CARILLON_EXPORT void* realloc(void* memory, std::size_t bytes) {
  if (memory == nullptr) return malloc(bytes);
  if (owns(memory)) {
    if (bytes == 0) {
      release(memory);
      return nullptr;
    }
    if (is_large(bytes) && resize(memory, bytes)) return memory;
    return moved(memory, usable_bytes(memory), bytes);
  }
  const std::size_t kept = is_large(bytes) ? next().usable(memory) : 0;
  if (kept > 0 && kept < bytes) {
    if (void* const block = allocate(bytes, 1, false); block != nullptr) {
      std::memcpy(block, memory, kept);
      next().free(memory);
      return block;
    }
  }
  // Which need not copy: the kernel can move a large block's pages.
  return next().realloc(memory, bytes);
}

CARILLON_EXPORT void* reallocarray(void* memory, std::size_t count, std::size_t bytes) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  return realloc(memory, all);
}

CARILLON_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  // The C library rounds what is no power of two up to one.
  return is_alignment(alignment) ? aligned(alignment, bytes) : next().memalign(alignment, bytes);
}

CARILLON_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  // Newer C libraries refuse here what is no power of two.
  return is_alignment(alignment) ? aligned(alignment, bytes)
                                 : next().aligned_alloc(alignment, bytes);
}

CARILLON_EXPORT int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  if (!is_alignment(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int kept_errno = errno;
  void* const block = aligned(alignment, bytes);
  errno = kept_errno;
  if (block == nullptr) return ENOMEM;
  *memory = block;
  return 0;
}

CARILLON_EXPORT void* valloc(std::size_t bytes) {
  return memalign(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), bytes);
}

CARILLON_EXPORT void* pvalloc(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return memalign(page, (bytes + page - 1) / page * page);
}

CARILLON_EXPORT std::size_t malloc_usable_size(void* memory) {
  if (memory != nullptr && owns(memory)) return usable_bytes(memory);
  return memory == nullptr ? 0 : next().usable(memory);
}

CARILLON_EXPORT int malloc_trim(std::size_t kept) {
  const bool ours = trim();
  return next().trim(kept) != 0 || ours ? 1 : 0;
}

}  // extern "C"
