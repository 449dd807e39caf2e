// SPDX-License-Identifier: Apache-2.0
//
// Proofs: verify for who asks it of many calls, of which some come to the same: other parameters,
// another operator or other nodes, and yet the same schedules. What has been proved of those very
// schedules, op by op, is not proved again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "schedule/verify.h"

namespace carillon {

class Proofs {
 public:
  /// What verify(call, emit) says. `emit` must give the same schedules whenever it is asked.
  Report verify(const TeamCall& call, const Emit& emit);
  /// How many of the calls were proved already.
  [[nodiscard]] std::int64_t known() const { return known_; }

 private:
  struct Proof {
    Shared shared;
    Limits limits;                    // no nodes where the schedules are the same on any
    std::vector<std::int64_t> parts;  // the ranks' own (parts_of)
    std::vector<Schedule> schedules;
    Report report;
    std::size_t bytes = 0;  // proofs of other sizes are others
  };

  [[nodiscard]] const Proof* find(const Proof& wanted) const;
  void keep(Proof proof);

  // The last ones, as many as there is room for, and how many bytes each has.
  std::deque<Proof> proofs_;
  std::deque<std::size_t> sizes_;
  std::size_t bytes_ = 0;
  std::int64_t known_ = 0;
};

}  // namespace carillon
