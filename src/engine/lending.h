// SPDX-License-Identifier: Apache-2.0
//
// Which way long messages within the node come to this process sooner: copied to shared memory and
// from there, or read in the sender's private memory. That depends on how far apart the cores are:
// it is learned as messages come, each way now and then.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace carillon {

class Lending {
 public:
  using Clock = std::chrono::steady_clock;

  /// Took so long to copy a message to shared memory. (Its reader's sender is like this process.)
  void note_written(Clock::duration took, std::int64_t bytes) { written_.note(took, bytes); }
  /// Took so long to take one from there.
  void note_shared(Clock::duration took, std::int64_t bytes) { shared_.note(took, bytes); }
  /// Took so long to read one in the sender's memory.
  void note_private(Clock::duration took, std::int64_t bytes) { private_.note(took, bytes); }

  /// Are messages better lent? Only once both ways have been seen.
  [[nodiscard]] bool pays() const {
    return shared_.ps_per_byte > 0 && private_.ps_per_byte > 0 &&
           private_.ps_per_byte <
               shared_.ps_per_byte + std::max(written_.ps_per_byte, shared_.ps_per_byte);
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
  Mean written_, shared_, private_;
};

}  // namespace carillon
