// SPDX-License-Identifier: Apache-2.0
//
// Which way long messages within the node come to this process sooner: copied to shared memory and
// from there, or read in the sender's private memory. That depends on how far apart the cores are,
// and on what is done with them: bytes that are reduced are read where they are in shared memory,
// but private ones are copied first. It is learned as messages come, each way now and then.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "transport/shm/layout.h"

namespace carillon {

class Lending {
 public:
  using Clock = std::chrono::steady_clock;

  /// Took so long to copy a message to shared memory. (Its reader's sender is like this process.)
  void note_written(Clock::duration took, std::int64_t bytes) {
    if (++writes_ > kFirst) written_.note(took, bytes);
  }
  /// Took so long to take one from there, to a copy of its own or into a sum.
  void note_shared(shm::Taken taken, Clock::duration took, std::int64_t bytes) {
    if (++takes_ > kFirst) shared_[taken].note(took, bytes);
  }
  /// Took so long from the sender's memory to there.
  void note_private(shm::Taken taken, Clock::duration took, std::int64_t bytes) {
    private_[taken].note(took, bytes);
  }

  /// Are messages that are so used better lent? Only once both ways have been seen.
  [[nodiscard]] bool pays(shm::Taken taken) const {
    const std::int64_t shared = shared_[taken].ps_per_byte;
    const std::int64_t lent = private_[taken].ps_per_byte;
    return shared > 0 && lent > 0 && lent < shared + std::max(written_.ps_per_byte, shared);
  }

 private:
  struct Mean {
    std::int64_t ps_per_byte = 0;
    void note(Clock::duration took, std::int64_t bytes) {
      const std::int64_t ns = std::chrono::nanoseconds(took).count();
      const std::int64_t now = std::max<std::int64_t>(1, ns * 1000 / bytes);
      // One that was interrupted says little.
      const std::int64_t sample = ps_per_byte == 0 ? now : std::min(now, 4 * ps_per_byte);
      ps_per_byte =
          ps_per_byte == 0 ? now : std::max<std::int64_t>(1, (7 * ps_per_byte + sample) / 8);
    }
  };
  struct Means {
    std::array<Mean, 2> means;
    Mean& operator[](shm::Taken taken) { return means[static_cast<std::size_t>(taken)]; }
    const Mean& operator[](shm::Taken taken) const {
      return means[static_cast<std::size_t>(taken)];
    }
  };

  // Shared memory that is used for the first time costs several times as much: the kernel makes its
  // pages. A pool's chunks are used in turn, and by default there are fewer of them than this.
  static constexpr int kFirst = 64;
  std::uint64_t writes_ = 0, takes_ = 0;
  Mean written_;
  Means shared_, private_;  // by how they are taken
};

}  // namespace carillon
