// SPDX-License-Identifier: Apache-2.0
//
// Children of fork, whose blocks are copies of their parent's: under limits, with other libraries'
// handlers of fork, of threads that are to be cancelled, and beside children that have no copy.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "early_handlers.h"
#include "support.h"

namespace heap_test {
namespace {

constexpr std::size_t kBytes = kMiB;

class Block {
 public:
  explicit Block(int salt, std::size_t bytes = kBytes) : memory_(std::malloc(bytes)) {
    fill(memory_, bytes, salt);
    EXPECT_TRUE(in_heap(memory_));
  }
  ~Block() { std::free(memory_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  [[nodiscard]] void* get() const { return memory_; }

 private:
  void* memory_;
};

class Limit {
 public:
  Limit(__rlimit_resource_t what, std::size_t bytes) : what_(what) {
    getrlimit(what_, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(what_, &now), 0);
  }
  ~Limit() { setrlimit(what_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  __rlimit_resource_t what_;
  rlimit before_ = {};
};

// What a child can do with its parent's blocks, and with its own.
int use_blocks(void* block, int salt) {
  if (!holds(block, kBytes, salt)) return 1;
  void* longer = std::realloc(block, 3 * kBytes);
  if (longer == nullptr || !holds(longer, kBytes, salt)) return 2;
  void* const small = std::malloc(kBytes / 8);
  auto* const cleared = static_cast<unsigned char*>(std::calloc(kBytes, 20));
  if (small == nullptr || cleared == nullptr) return 3;
  for (std::size_t i = 0; i < 20 * kBytes; i += 1000) {
    if (cleared[i] != 0) return 4;
  }
  fill(small, kBytes / 8, 99);
  if (!holds(longer, kBytes, salt)) return 5;
  std::free(cleared);
  std::free(longer);
  std::free(small);
  return 0;
}

TEST(Fork, AChildHasItsParentsBlocks) {
  const Block block(1);
  EXPECT_EQ(status_of([&] { return use_blocks(block.get(), 1); }), 0);
  EXPECT_EQ(status_of([&] {  // and so have its own
              return status_of([&] { return use_blocks(block.get(), 1); });
            }),
            0);
  EXPECT_TRUE(holds(block.get(), kBytes, 1));
}

// Private memory as long as the heap is more than some may have.
TEST(Fork, NeedsNoMoreDataThanTheBlocksHave) {
  const Block block(2);
  const Limit limit(RLIMIT_DATA, (status_kib("VmData") << 10) + 100 * kMiB);
  EXPECT_EQ(status_of([&] { return use_blocks(block.get(), 2); }), 0);
}

// Libraries of networks keep what cards write to from children.
TEST(Fork, SomeOfTheHeapMayNotBeForChildren) {
  const Block block(3), kept(4), other(5);
  ASSERT_EQ(madvise(kept.get(), kBytes, MADV_DONTFORK), 0);
  EXPECT_EQ(status_of([&] { return use_blocks(block.get(), 3); }), 0);
  EXPECT_EQ(status_of([&] { return use_blocks(other.get(), 5); }), 0);
  EXPECT_EQ(madvise(kept.get(), kBytes, MADV_DOFORK), 0);
}

// Handlers run in the reverse order before a fork, so the first library's are the innermost.
void* g_block = nullptr;
TEST(Fork, OtherLibrariesHandlersMayUseBlocks) {
  const Block block(6);
  g_block = block.get();
  EarlyHandlers& handlers = early_handlers();
  handlers.before = handlers.in_parent = [] { const Block other(1); };
  handlers.in_child = [] { std::memset(g_block, 7, kBytes); };
  alarm(30);
  const int state = status_of([] {
    const auto* const bytes = static_cast<unsigned char*>(g_block);
    return bytes[0] == 7 && bytes[kBytes - 1] == 7 ? 0 : 1;
  });
  alarm(0);
  handlers = {};
  EXPECT_EQ(state, 0);
  EXPECT_TRUE(holds(block.get(), kBytes, 6)) << "a child writes to its parent's block";
}

// Fork is no point of cancellation.
struct Forking {
  void* block;
  std::atomic<int> state = 99;
};
void* fork_though_cancelled(void* argument) {
  auto* const own = static_cast<Forking*>(argument);
  pthread_cancel(pthread_self());
  const pid_t child = fork();
  int before = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  if (child == 0) _exit(before == PTHREAD_CANCEL_ENABLE && holds(own->block, kBytes, 8) ? 0 : 1);
  own->state.store(before == PTHREAD_CANCEL_ENABLE ? status_of(child) : 98);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  pthread_testcancel();
  own->state.store(97);
  return nullptr;
}
TEST(Fork, AThreadThatIsToBeCancelledMayFork) {
  const Block block(8);
  Forking task{block.get()};
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, fork_though_cancelled, &task), 0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(task.state, 0);
  alarm(30);
  const Block other(9);  // the heap is not locked for ever
  alarm(0);
}

// Children that have no copy live on with all descriptors that there were: nobody waits for them.
TEST(Fork, WaitsForItsOwnChildOnly) {
  using Clock = std::chrono::steady_clock;
  constexpr int kChildren = 300;
  constexpr timespec kLife = {.tv_sec = 12, .tv_nsec = 0};
  const Block block(9);
  std::atomic<bool> over = false;
  std::atomic<int> forks = 0;
  pid_t others[kChildren] = {};
  std::thread makes([&] {
    int before = 0;
    for (pid_t& other : others) {
      while (forks < before && !over)
        std::this_thread::yield();  // they are made while the forks are
      if (over) return;
      ++before;
      other = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
      if (other == 0) {
        syscall(SYS_ppoll, nullptr, 0, &kLife, nullptr, 0);
        syscall(SYS_exit_group, 0);
      }
    }
    over = true;
  });
  auto longest = Clock::duration::zero();
  while (!over) {
    const auto begin = Clock::now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    longest = std::max(longest, Clock::now() - begin);
    ++forks;
    if (longest > std::chrono::seconds(10)) over = true;
    waitpid(child, nullptr, 0);
  }
  makes.join();
  for (const pid_t other : others) {
    if (other <= 0) continue;
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
  EXPECT_LT(longest, std::chrono::seconds(10));
}

// The last one: nobody else can have the heap from then on.
TEST(Fork, TheHeapsFileMayBeClosed) {
  const Block block(10), kept(11), other(12);
  ASSERT_EQ(close(region().fd), 0);
  EXPECT_EQ(status_of([&] { return use_blocks(block.get(), 10); }), 0);
  ASSERT_EQ(madvise(static_cast<char*>(kept.get()) + 4096, 8192, MADV_DONTFORK), 0);
  EXPECT_EQ(status_of([&] { return use_blocks(block.get(), 10); }), 0);
  EXPECT_EQ(status_of([&] { return use_blocks(other.get(), 12); }), 0);
  EXPECT_EQ(status_of([&] { return holds(kept.get(), 4096, 11) ? 0 : 1; }), 0);
  EXPECT_EQ(madvise(kept.get(), kBytes, MADV_DOFORK), 0);
}

}  // namespace
}  // namespace heap_test
