// SPDX-License-Identifier: Apache-2.0
//
// What moving a block both ways between two cores costs, by each way a library has:
//
//   two copies   through shared memory, pipelined: copy in here, copy out there
//   CMA          one copy by the kernel (process_vm_readv), no shared memory needed
//   direct       one copy by the reader: possible only where the buffers are shared memory
//
// Each rank also copies its own block, as in allgather. `same`: the block never changes, as in the
// public benchmarks; `fresh`: its owner has just written it, as in programs. Two pinned threads;
// medians, in microseconds.
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

namespace {

constexpr std::size_t kChunkBytes = 32 << 10;
constexpr std::size_t kChunks = 96;  // a ring beyond the second-level cache
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
  explicit Rank(std::size_t bytes)
      : block(bytes), ring(kChunkBytes * kChunks), own(bytes), other(bytes) {}
};

using Exchange = void (*)(Rank& me, Rank& peer, std::size_t bytes);

void two_copies(Rank& me, Rank& peer, std::size_t bytes) {
  const std::size_t chunk = std::min(bytes, kChunkBytes);
  const std::size_t start_written = me.written.value.load(std::memory_order_relaxed);
  const std::size_t start_read = me.read.value.load(std::memory_order_relaxed);
  std::size_t in = 0, out = 0;
  while (out < bytes) {
    const std::size_t number = start_written + in / chunk;
    // partner: the store of `read` by the peer
    if (in < bytes && number - peer.read.value.load(std::memory_order_acquire) < kChunks) {
      std::memcpy(me.ring.get() + number % kChunks * kChunkBytes, me.block.get() + in, chunk);
      me.written.value.store(number + 1, std::memory_order_release);  // partner: the load below
      std::memcpy(me.own.get() + in, me.block.get() + in, chunk);
      in += chunk;
    }
    const std::size_t next = start_read + out / chunk;
    if (peer.written.value.load(std::memory_order_acquire) > next) {
      std::memcpy(me.other.get() + out, peer.ring.get() + next % kChunks * kChunkBytes, chunk);
      me.read.value.store(next + 1, std::memory_order_release);  // partner: the load above
      out += chunk;
    }
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
  std::printf("%-6s %9s %12s %9s %9s\n", "block", "KiB", "two copies", "CMA", "direct");
  for (const bool fresh : {false, true}) {
    for (const std::size_t kib : {16UL, 64UL, 256UL, 1024UL, 4096UL}) {
      const std::size_t bytes = kib << 10;
      std::printf("%-6s %9zu %12.1f %9.1f %9.1f\n", fresh ? "fresh" : "same", kib,
                  median_us(two_copies, bytes, fresh), median_us(cma, bytes, fresh),
                  median_us(direct, bytes, fresh));
    }
  }
}
