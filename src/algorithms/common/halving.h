// SPDX-License-Identifier: Apache-2.0
//
// Recursive halving with the nearest partner first: what a rank has reduced is then a run of
// ranks, so that operators need not commute. Read backwards it is recursive doubling.
//
//   4 base ranks, blocks a b c d     step 1        step 2
//     0                              keeps a b     keeps a
//     1                              keeps c d     keeps c
//     2                              keeps a b     keeps b
//     3                              keeps c d     keeps d
#pragma once

#include <vector>

#include "schedule/problem.h"

namespace carillon {

/// Blocks first, ..., last-1.
struct BlockRun {
  Rank first = 0, last = 0;
};

struct HalvingStep {
  Rank mask = 1;
  Rank partner = 0;  ///< base index
  BlockRun keep, give;
};

/// The steps of base index `index` among `size` (a power of two).
inline std::vector<HalvingStep> halving_steps(Rank index, Rank size) {
  std::vector<HalvingStep> steps;
  BlockRun run{0, size};
  for (Rank mask = 1; mask < size; mask *= 2) {
    const Rank middle = (run.first + run.last) / 2;
    const BlockRun lower{run.first, middle};
    const BlockRun upper{middle, run.last};
    const bool keep_upper = (index & mask) != 0;
    run = keep_upper ? upper : lower;
    steps.push_back({mask, index ^ mask, run, keep_upper ? lower : upper});
  }
  return steps;
}

}  // namespace carillon
