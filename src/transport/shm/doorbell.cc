// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace carillon::shm {
namespace {

// Not there in old kernels and some sandboxes: a wake-up can then be missed, and the sleeper's
// short timeout is what ends its sleep.
void membarrier(int command) { syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

void register_for_wakeups() { membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

void wake(Segment& segment, int node_rank) {
  RankState& state = segment.state(node_rank);
  // partner: Sleep::Sleep, by way of its membarrier
  if (state.sleeping.load(std::memory_order_relaxed) == 0) return;
  state.wake_count.fetch_add(1, std::memory_order_release);  // partner: Sleep::sleep (futex)
  syscall(SYS_futex, &state.wake_count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Sleep::Sleep(Segment& segment, int node_rank)
    : segment_(segment),
      state_(segment.state(node_rank)),
      seen_(state_.wake_count.load(std::memory_order_acquire)) {
  state_.sleeping.fetch_add(1, std::memory_order_relaxed);             // partner: wake()
  segment_.header().sleepers.fetch_add(1, std::memory_order_seq_cst);  // partner: anybody_sleeps()
  membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void Sleep::sleep(int timeout_us) {
  const timespec timeout = {.tv_sec = timeout_us / 1000000,
                            .tv_nsec = static_cast<long>(timeout_us % 1000000) * 1000};
  syscall(SYS_futex, &state_.wake_count, FUTEX_WAIT, seen_, &timeout, nullptr, 0);
}

Sleep::~Sleep() {
  segment_.header().sleepers.fetch_sub(1, std::memory_order_relaxed);
  state_.sleeping.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace carillon::shm
