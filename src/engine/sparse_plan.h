// SPDX-License-Identifier: Apache-2.0
//
// SparsePlan: a plan of sends and recvs by tables is the same for all tables, and so names every
// rank of the team. Where tables have something for few of many ranks, most of it does nothing.
// Calls whose tables are empty at the same places, several in a row, go by a plan without that.
// Only this rank knows: its messages are the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/plan.h"

namespace carillon {

class SparsePlan {
 public:
  /// The plan for the next call, with these tables: `whole`, which is by_tables, or what of it does
  /// something.
  const std::shared_ptr<const Plan>& of(const std::shared_ptr<const Plan>& whole,
                                        const Tables& tables);

 private:
  bool note(const Tables& tables);

  std::shared_ptr<const Plan> whole_, part_;  // part_: null until it is made
  int calls_ = 0;                             // in a row, until then
  std::vector<std::uint8_t> filled_;          // by rank, which entries were not empty: 1 and 2
};

}  // namespace carillon
