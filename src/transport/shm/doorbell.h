// SPDX-License-Identifier: Apache-2.0
//
// Sleeping and waking. Whoever writes something a sleeper may wait for looks, after the write, at
// one shared counter of sleepers; the sleeper announces itself, makes every core of the node pass
// a memory barrier (membarrier), looks once more, and only then sleeps. So the writer's side
// costs one load of a line that hardly ever changes, and no fence.
#pragma once

#include <array>

#include "base/unique_fd.h"
#include "transport/shm/segment.h"

namespace carillon::shm {

/// To be called once by every process that writes to the segment.
void register_for_wakeups();

inline bool anybody_sleeps(const Segment& segment) {
  // The caller's write comes first; that no core swaps the two is the sleeper's membarrier's work.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // partner: the increment in Sleep
  return segment.header().sleepers.load(std::memory_order_relaxed) != 0;
}

/// Wakes `node_rank` if it sleeps.
void wake(Segment& segment, int node_rank);
class Bell;
/// So another thread of this process, which is `node_rank`. `bell`: null, or its own.
void wake_own(Segment& segment, int node_rank, const Bell* bell);

/// What wakes a rank that waits for a descriptor, too: a socket that others of the node send to.
class Bell {
 public:
  /// Hung out for `node_rank`. Without one (it cannot be had), sleeps on a descriptor are short.
  Bell(Segment& segment, int node_rank);
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// What a thread of this process rings, for less than others; -1: as others do.
  [[nodiscard]] int own_fd() const { return own_fd_.get(); }

 private:
  UniqueFd fd_, own_fd_;
};

/// One sleep of `node_rank`: construct, look once more for work, then sleep if there is none.
class Sleep {
 public:
  /// With a bell: for sleep_on.
  Sleep(Segment& segment, int node_rank, const Bell* bell = nullptr);
  ~Sleep();
  Sleep(const Sleep&) = delete;
  Sleep& operator=(const Sleep&) = delete;
  /// Until woken, or for timeout_us.
  void sleep(int timeout_us);
  /// Until woken, or one of the descriptors is readable, or for timeout_us. -1 is none. False: that
  /// time is over.
  bool sleep_on(std::array<int, 2> descriptors, int timeout_us);

 private:
  Segment& segment_;
  RankState& state_;
  const Bell* bell_;
  std::uint32_t seen_;
};

}  // namespace carillon::shm
