// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a call learn from one stage of their schedules to the next: lengths, say, by
// which the next one is made. That does not depend on time, so that it is found out beforehand, by
// the abstract machine (schedule/machine.h), with the real numbers of the tables and without data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/builder.h"
#include "sim/sim.h"

namespace carillon::sim {

class Lessons {
 public:
  /// Of a call that ranks make with these; refused if a stage learns from what is in the buffers.
  static Result<Lessons> of(const Job& job, const std::vector<Local>& locals);
  /// What the rank knows at the beginning of the stage, from 1 on.
  [[nodiscard]] std::span<const std::int64_t> learned(Rank rank, std::int32_t stage) const {
    return ranks_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stage - 1)];
  }

 private:
  std::vector<std::vector<std::vector<std::int64_t>>> ranks_;  // of each its stages' values
};

}  // namespace carillon::sim
