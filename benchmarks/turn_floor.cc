// SPDX-License-Identifier: Apache-2.0
//
// What it costs that the work of two processes, which one core does in turn, is done by a thread in
// each of them (docs/servlet.md) and not by one thread for both: the time of a turn in which so
// many bytes are copied, us, medians.
//   one thread: it does the turns of both
//   threads: two of one process, each waking the other
//   processes: the same two in two processes
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace {

constexpr std::uint32_t kTurns = 4000;  // of one measurement; even
constexpr std::size_t kMeasurements = 15;
constexpr std::size_t kMostBytes = 256 << 10;

// Whose turn it is: the first one's at even numbers. In memory of both.
struct Turn {
  std::atomic<std::uint32_t> number = 0;  // also a futex
};

// One of the two, with what it copies; in memory of its process.
class Side {
 public:
  Side() : from_(kMostBytes, 1), to_(kMostBytes, 2) {}
  void work(std::size_t bytes) {
    std::memcpy(to_.data(), from_.data(), bytes);
    from_[0] = to_[bytes / 2];
  }

 private:
  std::vector<char> from_, to_;
};

long futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value) {
  return syscall(SYS_futex, &word, what, value, nullptr, nullptr, 0);
}

void take_core() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(0, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

// The turns of one side; partner of each store with release: the other side's load.
void play(Turn& turn, std::uint32_t side, std::size_t bytes) {
  take_core();
  Side own;
  for (std::uint32_t number = side; number < kTurns; number += 2) {
    for (std::uint32_t now = turn.number.load(std::memory_order_acquire); now != number;
         now = turn.number.load(std::memory_order_acquire)) {
      futex(turn.number, FUTEX_WAIT, now);
    }
    own.work(bytes);
    turn.number.store(number + 1, std::memory_order_release);
    futex(turn.number, FUTEX_WAKE, 1);
  }
}

void one_thread(Turn& /*turn*/, std::size_t bytes) {
  std::array<Side, 2> sides;
  for (std::uint32_t number = 0; number < kTurns; ++number) sides[number % 2].work(bytes);
}

void threads(Turn& turn, std::size_t bytes) {
  std::thread other([&] { play(turn, 1, bytes); });
  play(turn, 0, bytes);
  other.join();
}

void processes(Turn& turn, std::size_t bytes) {
  const pid_t other = fork();
  if (other == 0) {
    play(turn, 1, bytes);
    _exit(0);
  }
  if (other < 0) return;
  play(turn, 0, bytes);
  waitpid(other, nullptr, 0);
}

double median_us(void (*way)(Turn&, std::size_t), Turn& turn, std::size_t bytes) {
  std::vector<double> turns_us;
  for (std::size_t i = 0; i < kMeasurements; ++i) {
    turn.number.store(0, std::memory_order_relaxed);  // nobody plays
    const auto start = std::chrono::steady_clock::now();
    way(turn, bytes);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    turns_us.push_back(time.count() / kTurns);
  }
  std::nth_element(turns_us.begin(), turns_us.begin() + kMeasurements / 2, turns_us.end());
  return turns_us[kMeasurements / 2];
}

}  // namespace

int main() {
  void* const memory =
      mmap(nullptr, sizeof(Turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("turn_floor: shared memory");
    return 1;
  }
  auto* const turn = new (memory) Turn;
  take_core();
  std::printf("%9s %12s %9s %11s\n", "KiB", "one thread", "threads", "processes");
  for (const std::size_t kib : {0UL, 4UL, 16UL, 64UL, 256UL}) {
    const std::size_t bytes = kib << 10;
    std::printf("%9zu %12.2f %9.2f %11.2f\n", kib, median_us(one_thread, *turn, bytes),
                median_us(threads, *turn, bytes), median_us(processes, *turn, bytes));
    std::fflush(stdout);
  }
}
