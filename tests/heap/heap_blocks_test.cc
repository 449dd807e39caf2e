// SPDX-License-Identifier: Apache-2.0
//
// What a program may expect of malloc and its like, whether its large blocks are in the shared heap
// or, for want of room, elsewhere. (Blocks and threads in use by an MPI: shared_heap_test.)
#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "support.h"

// C23's, of libraries that have them.
extern "C" {
__attribute__((weak)) void free_sized(void* memory, std::size_t bytes);
__attribute__((weak)) void free_aligned_sized(void* memory, std::size_t alignment,
                                              std::size_t bytes);
}

namespace heap_test {
namespace {

// The compiler knows these functions, and would leave out what it sees no use for.
template <typename Value>
Value hidden(Value value) {
  asm volatile("" : "+r"(value));
  return value;
}

bool heap_has(std::size_t bytes) { return region().fd >= 0 && region().bytes >= 16 * bytes; }

std::size_t machine_bytes() {
  struct sysinfo info = {};
  sysinfo(&info);
  return (info.totalram + info.totalswap) * info.mem_unit;
}

int overcommit() {
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  int mode = -1;
  file >> mode;
  return mode;
}

// Blocks of all lengths that come and go, of every function, and keep what is in them.
class Blocks {
 public:
  void step() {
    const std::size_t at = random(kMost);
    Block& block = blocks_[at];
    if (block.memory == nullptr) {
      make(block);
    } else if (random(2) == 0) {
      check(block);
      std::free(block.memory);
      block = {};
    } else {
      grow(block);
    }
  }
  void end() {
    for (Block& block : blocks_) {
      if (block.memory != nullptr) check(block);
      std::free(block.memory);
      block = {};
    }
  }

 private:
  static constexpr std::size_t kMost = 24;
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
    int salt = 0;
  };

  std::size_t random(std::size_t below) { return generator_() % below; }
  std::size_t random_bytes() {
    const std::size_t around[] = {40, 4096, 65536, 200000, 3 * kMiB};
    return 1 + random(2 * around[random(5)]);
  }
  void fill_anew(Block& block) {
    block.salt = ++salt_;
    fill(block.memory, block.bytes, block.salt);
  }
  static void check(const Block& block) {
    ASSERT_TRUE(holds(block.memory, block.bytes, block.salt));
    ASSERT_GE(malloc_usable_size(block.memory), block.bytes);
  }
  void make(Block& block) {
    block.bytes = random_bytes();
    const std::size_t alignment = std::size_t{8} << random(20);
    switch (random(6)) {
      case 0: block.memory = std::malloc(block.bytes); break;
      case 1:
        block.memory = std::calloc(1, block.bytes);
        ASSERT_TRUE(is_clear(block));
        break;
      case 2: ASSERT_EQ(posix_memalign(&block.memory, alignment, block.bytes), 0); break;
      case 3: block.memory = aligned_alloc(alignment, block.bytes); break;
      case 4: block.memory = memalign(alignment, block.bytes); break;
      case 5: block.memory = reallocarray(nullptr, block.bytes, 1); break;
    }
    ASSERT_NE(block.memory, nullptr);
    fill_anew(block);
  }
  void grow(Block& block) {
    const std::size_t bytes = random_bytes();
    block.memory = std::realloc(block.memory, bytes);
    ASSERT_NE(block.memory, nullptr);
    ASSERT_TRUE(holds(block.memory, std::min(bytes, block.bytes), block.salt));
    block.bytes = bytes;
    fill_anew(block);
  }
  static bool is_clear(const Block& block) {
    const auto* const bytes = static_cast<const unsigned char*>(block.memory);
    for (std::size_t i = 0; i < block.bytes; ++i) {
      if (bytes[i] != 0) return false;
    }
    return true;
  }

  Block blocks_[kMost] = {};
  int salt_ = 0;
  std::minstd_rand generator_{3};
};

TEST(Blocks, KeepWhatIsInThem) {
  Blocks blocks;
  for (int i = 0; i < 600 && !testing::Test::HasFailure(); ++i) {
    blocks.step();
    if (i % 300 == 299) malloc_trim(0);
  }
  blocks.end();
}

TEST(Blocks, ErrorsAreThoseOfTheStandard) {
  const std::size_t most = hidden(SIZE_MAX);
  void* block = &block;
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{4}, std::size_t{24}, most}) {
    errno = 7;
    EXPECT_EQ(posix_memalign(&block, hidden(alignment), kMiB), EINVAL);
    EXPECT_EQ(errno, 7);
    EXPECT_EQ(block, &block);
  }
  EXPECT_EQ(posix_memalign(&block, 64, most), ENOMEM);
  const auto expect_none = [](void* memory) {
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
  };
  expect_none(std::malloc(most));
  expect_none(std::malloc(most / 2));
  expect_none(std::calloc(most / 2, 3));
  expect_none(std::realloc(nullptr, most));
  expect_none(reallocarray(nullptr, most / 2, 3));
  expect_none(pvalloc(most));
  expect_none(valloc(most));
  expect_none(aligned_alloc(64, most - 63));
  block = std::malloc(kMiB);
  fill(block, kMiB, 1);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  expect_none(std::realloc(reinterpret_cast<void*>(hidden(address)), most));
  expect_none(reallocarray(reinterpret_cast<void*>(hidden(address)), most / 2, 3));
  EXPECT_TRUE(holds(block, kMiB, 1)) << "a block that could not grow";
  errno = 7;
  std::free(block);
  EXPECT_EQ(errno, 7);
  std::free(nullptr);
  EXPECT_EQ(malloc_usable_size(nullptr), 0U);
  EXPECT_THROW(operator delete(operator new(most / 2)), std::bad_alloc);
}

TEST(Blocks, AlignmentsAreKept) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto expect_aligned = [](void* memory, std::size_t alignment) {
    EXPECT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0U);
    std::free(memory);
  };
  for (const std::size_t bytes : {std::size_t{100}, kMiB}) {
    expect_aligned(valloc(bytes), page);
    expect_aligned(pvalloc(bytes), page);
    expect_aligned(memalign(hidden(std::size_t{48}), bytes), 64);
    for (std::size_t alignment = 16; alignment <= 8 * kMiB; alignment *= 2) {
      expect_aligned(aligned_alloc(alignment, bytes), alignment);
      void* const block = operator new (bytes, std::align_val_t{alignment});
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
      operator delete (block, std::align_val_t{alignment});
    }
  }
}

TEST(Blocks, AreFreedWithTheirSizeToo) {
  ASSERT_TRUE(free_sized != nullptr && free_aligned_sized != nullptr);
  for (const std::size_t bytes : {std::size_t{100}, kMiB}) {
    free_sized(std::malloc(bytes), bytes);
    free_aligned_sized(aligned_alloc(64, bytes), 64, bytes);
  }
}

// Nor does the C library give it, with which the kernel is asked.
TEST(Blocks, NobodyGetsMoreThanTheMachineHas) {
  if (overcommit() != 0) GTEST_SKIP() << "the kernel gives as much as is asked for, or less";
  const std::size_t bytes = hidden(machine_bytes() + 1024 * kMiB);
  errno = 0;
  void* block = std::malloc(bytes);
  EXPECT_EQ(block, nullptr);
  EXPECT_EQ(errno, ENOMEM);
  std::free(block);
  block = std::malloc(kMiB);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  void* const longer = std::realloc(block, bytes);
  EXPECT_EQ(longer, nullptr);
  std::free(longer != nullptr ? longer : reinterpret_cast<void*>(hidden(address)));
}

// A large block that is not in the heap grows by having its pages moved, not copied.
TEST(Blocks, ThatAreTheCLibrarysGrowAsUsual) {
  constexpr std::size_t kLong = 256 * kMiB;
  if (heap_has(kLong)) GTEST_SKIP() << "they are not";
  void* block = std::malloc(kLong);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 100);
  const std::size_t before = status_kib("VmRSS");
  block = std::realloc(block, 2 * kLong);
  ASSERT_NE(block, nullptr);
  EXPECT_LT(status_kib("VmRSS"), before + (kLong >> 12)) << "pages that nobody had used are copied";
  std::free(block);
}

TEST(Blocks, AHandlerOfTheAbortMayUseOthers) {
  if (!heap_has(kMiB)) GTEST_SKIP() << "the C library aborts in its own way";
  void* const block = std::malloc(kMiB);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const auto twice = [&] {
    signal(SIGABRT, [](int) {
      std::free(hidden(std::malloc(kMiB)));
      _exit(status_of([] { return 7; }));
    });
    close(STDERR_FILENO);
    for (int i = 0; i < 2; ++i) std::free(reinterpret_cast<void*>(hidden(address)));
    return 0;
  };
  const int state = status_of(twice);
  std::free(block);
  EXPECT_EQ(state, 7);
}

// For a dump the kernel would make all pages of the file.
TEST(Heap, IsInADumpAsFarAsItWasUsed) {
  void* const block = hidden(std::malloc(30 * kMiB));
  const Region heap = region();
  if (heap.bytes < 1024 * kMiB) GTEST_SKIP() << "there is little";
  std::ifstream maps("/proc/self/smaps");
  std::size_t dumped = 0;
  std::uintptr_t first = 0, end = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      first = from;
      end = to;
    }
    const auto start = reinterpret_cast<std::uintptr_t>(heap.first);
    const bool inside = first >= start && first < start + heap.bytes;
    const bool flags = line.starts_with("VmFlags:");
    if (inside && flags && line.find(" dd") == std::string::npos) dumped += end - first;
  }
  EXPECT_GE(dumped, 30 * kMiB);
  EXPECT_LT(dumped, 500 * kMiB);
  std::free(block);
}

}  // namespace
}  // namespace heap_test
