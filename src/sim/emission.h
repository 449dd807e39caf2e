// SPDX-License-Identifier: Apache-2.0
//
// Emission on demand: the parts that ranks run, emitted when they are needed. A short schedule is
// emitted whole when its rank begins; of a long one, made of a loop over the ranks, each strand has
// a window of a few steps at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/builder.h"
#include "sim/part.h"
#include "sim/sim.h"

namespace carillon::sim {

/// A strand's part, and the positions of the schedule that come after it.
struct StrandParts {
  Part part;
  std::int64_t next = 0, last = 0;
};

class Emission {
 public:
  Emission(const Job& job, const machine::Machine& machine, TransferTable* transfers);

  /// Decides between whole and windows; the same for all ranks, as their messages must match.
  Status prepare(const Options& options);
  /// The rank's strands and their first parts.
  Status begin(Rank rank, std::vector<StrandParts>* strands);
  /// The strand's next part that has steps; none, and next == last, at its end.
  Status advance(Rank rank, StrandParts* strand);
  void give_back(Part* part) { compiler_.give_back(part); }

 private:
  Status emit(Rank rank, Window window);

  const Job& job_;
  Call call_;
  TransferTable& transfers_;
  Compiler compiler_;
  Builder builder_;
  Compiler::Messages messages_ = Compiler::Messages::kNumbered;
  bool windows_ = false;
  std::int64_t window_positions_ = 1;
};

}  // namespace carillon::sim
