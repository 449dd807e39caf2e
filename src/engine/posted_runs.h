// SPDX-License-Identifier: Apache-2.0
//
// Runs that the program's thread has posted while the servlet had the engine's lock: a queue
// without locks, of one producer. Whoever has the lock takes them out, in order, before anything
// else.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace carillon {

class Run;

class PostedRuns {
 public:
  /// False: there is no room. Of the producer.
  bool push(Run& run) {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    // partner: the release store in pop()
    if (tail - head_.load(std::memory_order_acquire) == kRoom) return false;
    places_[tail % kRoom] = &run;
    // partner: pop(), empty()
    tail_.store(tail + 1, std::memory_order_seq_cst);
    return true;
  }
  /// Null: there is none. With the engine's lock.
  Run* pop() {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return nullptr;  // partner: push()
    Run* const run = places_[head % kRoom];
    head_.store(head + 1, std::memory_order_release);
    return run;
  }
  /// In the one order of all with what who goes to sleep says before (Servlet::wake_for_posted).
  [[nodiscard]] bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_seq_cst);
  }

 private:
  static constexpr std::uint32_t kRoom = 1024;
  alignas(64) std::atomic<std::uint32_t> tail_ = 0;  // the producer's
  alignas(64) std::atomic<std::uint32_t> head_ = 0;
  std::array<Run*, kRoom> places_ = {};
};

}  // namespace carillon
