// SPDX-License-Identifier: Apache-2.0
//
// How messages are copied that another core has written: by the C library's memcpy, which for some
// KiB is one instruction of the processor's (REP MOVSB), or by vectors. On some processors the one
// takes twice as long as the other, or half as long, by where the other core is
// (docs/performance.md), and from process to process: so both are tried, and the better one is
// taken.
#pragma once

#include <array>
#include <cstdint>

#include "engine/mean_cost.h"
#include "transport/shm/layout.h"

namespace carillon {

class CopyChoice {
 public:
  /// What comes from memory, or was written in lines that this core had, is quicker by vectors, as
  /// far as is known; what else comes from a cache, by memcpy.
  CopyChoice() {
    for (auto& ways : kinds_) {
      for (const shm::Way way : {shm::Way::kUncached, shm::Way::kHanded}) {
        ways[static_cast<std::size_t>(way)].vectors = true;
      }
    }
  }
  /// Is the next message that is taken so and came that way copied by vectors? Some are the other
  /// way than is preferred, to learn of it.
  bool next_by_vectors(shm::Taken taken, shm::Way way) {
    Kind& kind = kind_of(taken, way);
    const bool trial = kind.copies++ / kTurn % kTurns == 1;
    return trial != kind.vectors;
  }
  /// One took so long.
  void note(shm::Taken taken, shm::Way way, bool by_vectors, MeanCost::Clock::duration took,
            std::int64_t bytes) {
    Kind& kind = kind_of(taken, way);
    (by_vectors ? kind.by_vectors : kind.by_memcpy).note(took, bytes);
    const std::int64_t vectors = kind.by_vectors.known_fs(), memcpy = kind.by_memcpy.known_fs();
    if (vectors == 0 || memcpy == 0) return;
    kind.vectors = kind.vectors ? 16 * vectors < 17 * memcpy : 16 * vectors < 15 * memcpy;
  }

 private:
  struct Kind {
    MeanCost by_memcpy, by_vectors;
    std::uint64_t copies = 0;
    bool vectors = false;
  };
  Kind& kind_of(shm::Taken taken, shm::Way way) {
    return kinds_[static_cast<std::size_t>(taken)][static_cast<std::size_t>(way)];
  }
  // One turn of so many copies in so many turns is the other way.
  static constexpr std::uint64_t kTurn = 64, kTurns = 64;

  std::array<std::array<Kind, shm::kWays>, shm::kTakenKinds> kinds_;
};

}  // namespace carillon
