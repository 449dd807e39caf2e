// SPDX-License-Identifier: Apache-2.0
//
// What moving a block both ways between two cores costs, by each way a library has:
//
//   two copies   through shared memory, pipelined: copy in here, copy out there, by memcpy
//   by vectors   the same, but for how it is copied out
//   past caches  the same, and it is copied in past the writer's caches
//   handed over  through shared memory, each chunk written where the one before it was read
//   CMA          one copy by the kernel (process_vm_readv), no shared memory needed
//   direct       one copy by the reader: possible only where the buffers are shared memory
//
// Each rank also copies its own block, as in allgather. `same`: the block never changes, as in the
// public benchmarks; `fresh`: its owner has just written it, as in programs. Two pinned threads;
// medians, in microseconds. `line`: what a cache line takes from core to core then, in nanoseconds.
//
//   build/bin/copy_floor
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/copy.h"

namespace {

constexpr std::size_t kChunkBytes = 32 << 10;
constexpr std::size_t kRingBytes = 3 << 20;  // beyond the second-level cache
constexpr int kRounds = 200;

struct alignas(64) Counter {
  std::atomic<std::size_t> value = 0;
};

struct Buffer {
  explicit Buffer(std::size_t bytes)
      : memory(static_cast<char*>(std::aligned_alloc(4096, bytes)), &std::free) {
    std::memset(memory.get(), 1, bytes);
  }
  [[nodiscard]] char* get() const { return memory.get(); }
  std::unique_ptr<char, void (*)(void*)> memory;
};

struct Rank {
  Buffer block, ring, own, other;
  Counter written, read, entered;
  explicit Rank(std::size_t bytes) : block(bytes), ring(kRingBytes), own(bytes), other(bytes) {}
};

using Exchange = void (*)(Rank& me, Rank& peer, std::size_t bytes);

using Copy = void (*)(void* to, const void* from, std::size_t bytes);

template <Copy kIn, Copy kOut>
void two_copies(Rank& me, Rank& peer, std::size_t bytes) {
  const std::size_t chunk = std::min(bytes, kChunkBytes), chunks = kRingBytes / chunk;
  const std::size_t start_written = me.written.value.load(std::memory_order_relaxed);
  const std::size_t start_read = me.read.value.load(std::memory_order_relaxed);
  std::size_t in = 0, out = 0;
  while (out < bytes) {
    const std::size_t number = start_written + in / chunk;
    // partner: the store of `read` by the peer
    if (in < bytes && number - peer.read.value.load(std::memory_order_acquire) < chunks) {
      kIn(me.ring.get() + number % chunks * chunk, me.block.get() + in, chunk);
      me.written.value.store(number + 1, std::memory_order_release);  // partner: the load below
      std::memcpy(me.own.get() + in, me.block.get() + in, chunk);
      in += chunk;
    }
    const std::size_t next = start_read + out / chunk;
    if (peer.written.value.load(std::memory_order_acquire) > next) {
      kOut(me.other.get() + out, peer.ring.get() + next % chunks * chunk, chunk);
      me.read.value.store(next + 1, std::memory_order_release);  // partner: the load above
      out += chunk;
    }
  }
}

// The ring of who begins is first the one's and then the other's, chunk by chunk.
void handed_over(Rank& me, Rank& peer, std::size_t bytes) {
  const std::size_t chunk = std::min(bytes, kChunkBytes);
  const std::size_t start = me.written.value.load(std::memory_order_relaxed);
  for (std::size_t at = 0; at < bytes; at += chunk) {
    const std::size_t number = start + at / chunk;
    const bool is_even = number % 2 == 0;
    carillon::copy_memory((is_even ? me : peer).ring.get(), me.block.get() + at, chunk);
    me.written.value.store(number + 1, std::memory_order_release);  // partner: the load below
    std::memcpy(me.own.get() + at, me.block.get() + at, chunk);
    while (peer.written.value.load(std::memory_order_acquire) <= number) {
    }
    carillon::copy_by_vectors(me.other.get() + at, (is_even ? peer : me).ring.get(), chunk);
  }
}

void cma(Rank& me, Rank& peer, std::size_t bytes) {
  const iovec to{me.other.get(), bytes}, from{peer.block.get(), bytes};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) {
    std::perror("process_vm_readv");
    std::exit(1);
  }
  std::memcpy(me.own.get(), me.block.get(), bytes);
}

void direct(Rank& me, Rank& peer, std::size_t bytes) {
  std::memcpy(me.other.get(), peer.block.get(), bytes);
  std::memcpy(me.own.get(), me.block.get(), bytes);
}

// One rank answers the other.
constexpr std::size_t kLines = 50;
void line_both_ways(Rank& me, Rank& peer, std::size_t) {
  for (std::size_t i = 0; i < kLines; ++i) {
    const std::size_t mine = me.written.value.load(std::memory_order_relaxed) + 1;
    const bool begins = &me < &peer;
    if (begins)
      me.written.value.store(mine, std::memory_order_release);  // partner: the peer's load
    while (peer.written.value.load(std::memory_order_acquire) < mine) {
    }
    if (!begins) me.written.value.store(mine, std::memory_order_release);  // partner: the same
  }
}

void meet(Rank& me, Rank& peer, std::size_t count) {
  me.entered.value.store(count, std::memory_order_release);  // partner: the peer's load
  while (peer.entered.value.load(std::memory_order_acquire) < count) {
  }
}

void run(Exchange exchange, Rank& me, Rank& peer, std::size_t bytes, int core, bool fresh,
         std::vector<double>& rounds_us) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
  for (std::size_t i = 0; i < kRounds; ++i) {
    if (fresh) {
      for (std::size_t at = 0; at < bytes; at += 64) me.block.get()[at] = static_cast<char>(i);
    }
    meet(me, peer, 2 * i + 1);
    const auto start = std::chrono::steady_clock::now();
    exchange(me, peer, bytes);
    meet(me, peer, 2 * i + 2);
    rounds_us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
}

double median_us(Exchange exchange, std::size_t bytes, bool fresh) {
  Rank first(bytes), second(bytes);
  std::array<std::vector<double>, 2> rounds_us;
  std::thread one([&] { run(exchange, first, second, bytes, 0, fresh, rounds_us[0]); });
  std::thread other([&] { run(exchange, second, first, bytes, 1, fresh, rounds_us[1]); });
  one.join();
  other.join();
  std::nth_element(rounds_us[0].begin(), rounds_us[0].begin() + kRounds / 2, rounds_us[0].end());
  return rounds_us[0][kRounds / 2];
}

}  // namespace

int main() {
  if (std::thread::hardware_concurrency() < 2) {
    std::fprintf(stderr, "copy_floor: needs two cores\n");
    return 1;
  }
  using carillon::copy_by_vectors, carillon::copy_memory, carillon::copy_past_caches;
  std::printf("%-6s %6s %6s %11s %11s %12s %12s %7s %7s\n", "block", "KiB", "line", "two copies",
              "by vectors", "past caches", "handed over", "CMA", "direct");
  for (const bool fresh : {false, true}) {
    for (const std::size_t kib : {4UL, 16UL, 64UL, 256UL, 1024UL, 4096UL}) {
      const std::size_t bytes = kib << 10;
      std::printf("%-6s %6zu %6.0f %11.2f %11.2f %12.2f %12.2f %7.2f %7.2f\n",
                  fresh ? "fresh" : "same", kib,
                  1e3 * median_us(line_both_ways, bytes, false) / (2 * kLines),
                  median_us(two_copies<copy_memory, copy_memory>, bytes, fresh),
                  median_us(two_copies<copy_memory, copy_by_vectors>, bytes, fresh),
                  median_us(two_copies<copy_past_caches, copy_by_vectors>, bytes, fresh),
                  median_us(handed_over, bytes, fresh), median_us(cma, bytes, fresh),
                  median_us(direct, bytes, fresh));
    }
  }
}
