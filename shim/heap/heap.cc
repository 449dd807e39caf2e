// SPDX-License-Identifier: Apache-2.0
//
// A child of fork must not see what its parent writes afterwards, nor the other way round: the
// parent waits in fork until the child has copied what the heap holds, and the child goes on with
// its copy, at the same addresses. (A child of vfork or posix_spawn is about to exec.)
//
// Pages stay with the heap when they are freed: network cards may have been told of them.
#include "heap.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "base/file_size.h"
#include "pages.h"
#include "pins.h"

namespace carillon::heap {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kMostAlignment = 2 * kMiB;  // of the heap's start, and so of blocks
constexpr unsigned long kDefaultMib = 65536, kMostMib = 4UL << 20;
constexpr std::size_t kDumpStep = 16 * kMiB;
// What a machine may not have is asked for in blocks of so much.
constexpr std::size_t kHuge = 1024 * kMiB;
// Programs that close all descriptors they may have inherited begin with the first.
constexpr int kHighDescriptor = 768;

struct Heap {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  int fd = -1;          // of its file, unless the program has closed it
  bool shared = false;  // the memory is the file's; a child's is its own
  dev_t device = 0;
  ino_t inode = 0;
  std::size_t dumped = 0;  // so much of it, from its start, is in a dump of the process
  Pages* pages = nullptr;
  int copied[2] = {-1, -1};  // the child says there that it has its copy
  int cancel_state = 0;      // of the thread that forks
};

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
Heap g_heap;
alignas(Pages) std::byte g_pages[sizeof(Pages)];
constinit Pins g_pins;
constinit std::atomic<void (*)(std::uint32_t)> g_say_freed = nullptr;  // relaxed: no data with it
bool g_tried = false;
// Set once, before the first block is handed out, by which threads come to know of it.
std::atomic<std::uintptr_t> g_begin = 0, g_end = 0;

class Lock {
 public:
  Lock() { pthread_mutex_lock(&g_mutex); }
  ~Lock() { pthread_mutex_unlock(&g_mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

// The calls in its life do not end a thread that is to be cancelled.
class NoCancel {
 public:
  NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = 0;
};

void say(const char* what, const char* why) {
  for (const char* const part : {"carillon: shared heap: ", what, ": ", why, "\n"}) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
  }
}

std::size_t wanted_bytes() {
  const char* const text =
      std::getenv("CARILLON_SHARED_HEAP_MIB");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr || *text == '\0') return kDefaultMib * kMiB;
  char* end = nullptr;
  const unsigned long mib = std::strtoul(text, &end, 10);
  if (*end != '\0' || *text == '-' || mib > kMostMib) {
    say("CARILLON_SHARED_HEAP_MIB is no number of MiB up to 4194304; blocks stay private", text);
    return 0;
  }
  return mib * kMiB;
}

// (Fork cannot be cancelled, but what is called here can.)
void before_fork() {
  int cancel_state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  pthread_mutex_lock(&g_mutex);
  g_heap.cancel_state = cancel_state;
  if (g_heap.shared && pipe2(g_heap.copied, O_CLOEXEC) != 0) {
    say("a child of fork may see what its parent writes afterwards",
        std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  }
}

// Until the child has its copy, or has ended. (Others may have the pipe's end, too: children of
// clone, or who are about to exec.)
void in_parent() {
  int* const ends = g_heap.copied;
  if (ends[0] >= 0) {
    close(ends[1]);
    char none = 0;
    while (read(ends[0], &none, 1) < 0 && errno == EINTR) continue;
    close(ends[0]);
    ends[0] = ends[1] = -1;
  }
  const int cancel_state = g_heap.cancel_state;
  pthread_mutex_unlock(&g_mutex);
  pthread_setcancelstate(cancel_state, nullptr);
}

// Programs close descriptors that they do not know; another file may have the number then.
bool has_file() {
  struct stat info = {};
  return g_heap.fd >= 0 && fstat(g_heap.fd, &info) == 0 && info.st_dev == g_heap.device &&
         info.st_ino == g_heap.inode;
}

// What was written to the heap's first bytes goes there. False: that cannot be seen. (Not by the
// heap's addresses: libraries of networks keep some of them from children, MADV_DONTFORK.)
bool copy_written(std::byte* to, std::size_t used) {
  for (off_t begin = 0, end = 0; begin < static_cast<off_t>(used); begin = end) {
    begin = lseek(g_heap.fd, begin, SEEK_DATA);
    if (begin < 0) return errno == ENXIO;  // there is no more
    if (begin >= static_cast<off_t>(used)) break;
    end = std::min(lseek(g_heap.fd, begin, SEEK_HOLE), static_cast<off_t>(used));
    if (end <= begin) return false;
    for (off_t at = begin; at < end;) {
      const ssize_t got = pread(g_heap.fd, to + at, static_cast<std::size_t>(end - at), at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
    }
  }
  return true;
}

// Has this process the pages? (MADV_DONTFORK.)
bool are_there(std::size_t first, std::size_t count) {
  return msync(g_heap.base + first * kPageBytes, count * kPageBytes, MS_ASYNC) == 0;
}

// The same without the file: all of all blocks, but what is zero, as new pages are.
void copy_blocks(std::byte* to) {
  g_heap.pages->each_used([&](std::uint32_t first, std::uint32_t count) {
    static constexpr std::byte kZeros[kPageBytes] = {};
    const bool all = are_there(first, count);
    for (std::size_t page = first; page < std::size_t{first} + count; ++page) {
      const std::byte* const from = g_heap.base + page * kPageBytes;
      if (!all && !are_there(page, 1)) continue;
      if (std::memcmp(from, kZeros, kPageBytes) == 0) continue;
      std::memcpy(to + page * kPageBytes, from, kPageBytes);
    }
  });
}

// The pages that hold anything, at the same addresses, in memory of this process alone. What was
// never used of the heap goes: private memory of that length is more than there may be (ulimit -d,
// overcommit_memory=2), and so is the address space, twice (ulimit -v).
// Not by mmap and its like: UCX puts functions of its own in their place, which take locks.
bool make_private() {
  const std::size_t used = std::size_t{g_heap.pages->untouched()} * kPageBytes;
  const bool by_file = has_file();
  if (used < g_heap.bytes) syscall(SYS_munmap, g_heap.base + used, g_heap.bytes - used);
  g_heap.pages->cut_off_untouched();
  g_heap.bytes = used;
  g_end.store(reinterpret_cast<std::uintptr_t>(g_heap.base) + used, std::memory_order_relaxed);
  if (used == 0) return true;
  const long copy = syscall(SYS_mmap, nullptr, used, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copy == -1) return false;
  auto* const bytes = reinterpret_cast<std::byte*>(copy);  // NOLINT(performance-no-int-to-ptr)
  if (!by_file || !copy_written(bytes, used)) copy_blocks(bytes);
  return syscall(SYS_mremap, copy, used, used, MREMAP_MAYMOVE | MREMAP_FIXED, g_heap.base) != -1;
}

void in_child() {
  if (g_heap.shared) {
    if (!make_private()) {
      say("no memory for a child's copy", std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
      _exit(127);
    }
    if (has_file()) close(g_heap.fd);
    g_heap.fd = -1;
    g_heap.shared = false;
  }
  g_pins.clear();
  int* const ends = g_heap.copied;
  if (ends[0] >= 0) {
    // This process can read it, too: it gets no SIGPIPE if its parent has ended.
    while (write(ends[1], "", 1) < 0 && errno == EINTR) continue;
    close(ends[0]);
    close(ends[1]);
    ends[0] = ends[1] = -1;
  }
  g_mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_setcancelstate(g_heap.cancel_state, nullptr);
}

// The whole file.
void* map_aligned(int fd, std::size_t bytes) {
  void* const room = mmap(nullptr, bytes + kMostAlignment, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  const auto first = reinterpret_cast<std::uintptr_t>(room);
  const std::size_t before = (kMostAlignment - first % kMostAlignment) % kMostAlignment;
  std::byte* const start = static_cast<std::byte*>(room) + before;
  if (before > 0) munmap(room, before);
  munmap(start + bytes, kMostAlignment - before);
  void* const base =
      mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) munmap(start, bytes);
  return base;
}

// Locked. False: there is none, and blocks come from elsewhere.
bool open_heap() {
  if (g_tried) return g_heap.pages != nullptr;
  g_tried = true;
  const NoCancel no_cancel;
  const std::size_t bytes = wanted_bytes();
  const std::size_t pages = bytes / kPageBytes;
  if (pages == 0) return false;
  const int low = memfd_create("carillon heap", MFD_CLOEXEC);
  const int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, kHighDescriptor);
  const int fd = high < 0 ? low : high;
  if (high >= 0) close(low);
  void* base = MAP_FAILED;
  void* notes = MAP_FAILED;
  struct stat info = {};
  if (fd >= 0 && size_file(fd, bytes) == 0 && fstat(fd, &info) == 0) {
    base = map_aligned(fd, bytes);
    notes = mmap(nullptr, pages * sizeof(Note), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (base == MAP_FAILED || notes == MAP_FAILED) {
    say("cannot be made (ulimit -v, -d, -f?), blocks stay private",
        std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    if (base != MAP_FAILED) munmap(base, bytes);
    if (notes != MAP_FAILED) munmap(notes, pages * sizeof(Note));
    if (fd >= 0) close(fd);
    return false;
  }
  syscall(SYS_madvise, base, bytes, MADV_DONTDUMP);  // see dump_used()
  g_heap.base = static_cast<std::byte*>(base);
  g_heap.bytes = bytes;
  g_heap.fd = fd;
  g_heap.shared = true;
  g_heap.device = info.st_dev;
  g_heap.inode = info.st_ino;
  g_heap.pages = new (g_pages) Pages(static_cast<Note*>(notes), static_cast<std::uint32_t>(pages));
  g_begin.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_relaxed);
  g_end.store(reinterpret_cast<std::uintptr_t>(base) + bytes, std::memory_order_relaxed);
  return true;
}

// Before any other library's (-z initfirst): in the child, the copy is there before their handlers
// run, and none of them runs while this one has the heap locked.
__attribute__((constructor)) void watch_forks() {
  pthread_atfork(before_fork, in_parent, in_child);
}

std::uint32_t pages_for(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + kPageBytes - 1) / kPageBytes);
}

// Locked.
std::uint32_t page_of(const void* memory) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(memory) - g_heap.base);
  const auto page = static_cast<std::uint32_t>(offset / kPageBytes);
  if (offset % kPageBytes != 0 || g_heap.pages->size_of(page) == 0) {
    pthread_mutex_unlock(&g_mutex);  // a handler of SIGABRT may want memory, or fork
    say("no block begins where one is freed, or it was freed before", "ending the process");
    std::abort();
  }
  return page;
}

// Locked. In a dump of the process the kernel makes all the pages of a file that are not there: so
// what was never used of the heap is in none.
void dump_used() {
  const std::size_t used = std::size_t{g_heap.pages->untouched()} * kPageBytes;
  if (!g_heap.shared || used <= g_heap.dumped) return;
  const std::size_t end = std::min(g_heap.bytes, (used / kDumpStep + 1) * kDumpStep);
  syscall(SYS_madvise, g_heap.base + g_heap.dumped, end - g_heap.dumped, MADV_DODUMP);
  g_heap.dumped = end;
}

// Longer than all memory of the machine: whether there is as much, the C library is to say, whose
// blocks the kernel accounts for (vm.overcommit_memory).
bool is_beyond_memory(std::size_t bytes) {
  if (bytes < kHuge) return false;
  struct sysinfo machine = {};
  if (sysinfo(&machine) != 0) return false;
  return bytes / machine.mem_unit > machine.totalram + machine.totalswap;
}

}  // namespace

void* allocate(std::size_t bytes, std::size_t alignment, bool cleared) {
  if (is_beyond_memory(bytes)) return nullptr;
  const int kept_errno = errno;
  void* memory = nullptr;
  std::size_t dirty = 0;
  {
    const Lock lock;
    if (open_heap() && bytes <= g_heap.bytes && alignment <= kMostAlignment) {
      const std::uint32_t untouched = g_heap.pages->untouched();
      const std::uint32_t first = g_heap.pages->allocate(
          pages_for(bytes), std::max<std::uint32_t>(1, pages_for(alignment)));
      if (first != Pages::kNone) {
        memory = g_heap.base + std::size_t{first} * kPageBytes;
        dirty =
            first < untouched ? std::min(bytes, std::size_t{untouched - first} * kPageBytes) : 0;
        dump_used();
      }
    }
  }
  if (cleared && memory != nullptr) std::memset(memory, 0, dirty);
  errno = kept_errno;
  return memory;
}

bool owns(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return address >= g_begin.load(std::memory_order_relaxed) &&
         address < g_end.load(std::memory_order_relaxed);
}

std::size_t usable_bytes(void* memory) {
  const Lock lock;
  return std::size_t{g_heap.pages->size_of(page_of(memory))} * kPageBytes;
}

void release(void* memory) {
  std::optional<std::uint32_t> pinned;
  {
    const Lock lock;
    const std::uint32_t page = page_of(memory);
    const std::size_t bytes = std::size_t{g_heap.pages->size_of(page)} * kPageBytes;
    pinned = g_pins.find(static_cast<std::byte*>(memory), bytes);
    if (!pinned) {
      g_heap.pages->release(page);
    } else {
      g_pins.keep(static_cast<std::byte*>(memory), bytes, page);
    }
  }
  const auto say_freed = g_say_freed.load(std::memory_order_relaxed);
  if (pinned && say_freed != nullptr) say_freed(*pinned);
}

bool resize(void* memory, std::size_t bytes) {
  if (is_beyond_memory(bytes)) return false;
  const Lock lock;
  const std::uint32_t page = page_of(memory);
  const std::size_t now = std::size_t{g_heap.pages->size_of(page)} * kPageBytes;
  if (bytes < now && g_pins.find(static_cast<std::byte*>(memory), now)) return false;
  if (bytes > g_heap.bytes || !g_heap.pages->resize(page, pages_for(bytes))) return false;
  dump_used();
  return true;
}

bool trim() {
  const Lock lock;
  bool any = false;
  if (g_heap.pages == nullptr) return false;
  const int advice = g_heap.shared ? MADV_REMOVE : MADV_DONTNEED;
  g_heap.pages->each_free([&](std::uint32_t first, std::uint32_t count) {
    any = madvise(g_heap.base + std::size_t{first} * kPageBytes, std::size_t{count} * kPageBytes,
                  advice) == 0 ||
          any;
  });
  return any;
}

}  // namespace carillon::heap

extern "C" __attribute__((visibility("default"))) int carillon_heap_region(void** base,
                                                                           std::size_t* bytes,
                                                                           int* fd) {
  using namespace carillon::heap;
  const Lock lock;
  if (!open_heap() || !g_heap.shared || !has_file()) return -1;
  *base = g_heap.base;
  *bytes = g_heap.bytes;
  *fd = g_heap.fd;
  return 0;
}

extern "C" __attribute__((visibility("default"))) int carillon_heap_pin(const void* address,
                                                                        unsigned tag) {
  using namespace carillon::heap;
  if (!owns(address)) return Pins::kNone;
  const Lock lock;
  return g_pins.add(static_cast<const std::byte*>(address), tag);
}

extern "C" __attribute__((visibility("default"))) void carillon_heap_unpin(int number) {
  using namespace carillon::heap;
  const Lock lock;
  if (const auto page = g_pins.take_out(number); page) g_heap.pages->release(*page);
}

extern "C" __attribute__((visibility("default"))) void carillon_heap_say_freed(
    void (*say)(unsigned tag)) {
  carillon::heap::g_say_freed.store(say, std::memory_order_relaxed);
}
