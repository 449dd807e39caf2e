// SPDX-License-Identifier: Apache-2.0
//
// Proofs: verify for who asks it of many calls, of which some come to the same: other parameters,
// another operator or other nodes, and yet the same schedules. What has been proved of those very
// schedules, op by op, is not proved again.
//
// A proof is of the ranks' schedules and of all that the verifier looks at besides: Shared, Limits,
// and each rank's Local with its tables. It holds for another call only if these are equal. They
// are kept and compared whole: there is no hash that two could share. Three things may differ:
//   parameters   the verifier does not see them;
//   the operator from one that need not commute to one that does, whose proof asks for less; the
//                other way only if everything was found to be reduced in rank order (Report);
//   the nodes    (and domains) where every message of every rank is of a pair: only channels of
//                several readers, and aggregates, ask where a rank is.
// Another root is another claim, and proved anew, though the schedules may be those of the other
// root with the ranks renamed: where blocks lie and in which order they are reduced goes by the
// ranks themselves. Of several stages no schedule is known before it runs; nothing is kept of
// those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "schedule/verify.h"

namespace carillon {

/// Emit, into a schedule that may have been another one.
using EmitInto = std::function<Status(Rank rank, std::int32_t stage,
                                      std::span<const std::int64_t> learned, Schedule* schedule)>;

class Proofs {
 public:
  /// What verify(call, emit) says. `emit` must give the same schedules whenever it is asked.
  Report verify(const TeamCall& call, const EmitInto& emit);
  Report verify(const TeamCall& call, const Emit& emit);
  /// How many of the calls were proved already.
  [[nodiscard]] std::int64_t known() const { return known_; }

 private:
  struct Proof {
    Shared shared;
    Limits limits;                    // no nodes where the schedules are the same on any
    std::vector<std::int64_t> parts;  // the ranks' own (fill_parts)
    std::vector<Schedule> schedules;
    Report report;
    std::size_t bytes = 0;  // proofs of other sizes are others
  };

  [[nodiscard]] const Proof* find(const Proof& wanted) const;
  bool prepare(const TeamCall& call, const EmitInto& emit);
  void keep_next();

  Proof next_;  // of this call; its memory is that of one before
  // The last ones, as many as there is room for, and how many bytes each has.
  std::deque<Proof> proofs_;
  std::deque<std::size_t> sizes_;
  std::size_t bytes_ = 0;
  std::int64_t known_ = 0;
  Verifier verifier_;
};

}  // namespace carillon
