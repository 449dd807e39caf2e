// SPDX-License-Identifier: Apache-2.0
//
// verify: proves a collective's schedules correct for one team and call, by running them once on
// symbolic bytes (docs/schedule.md says what is proved, and why one run is enough).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "schedule/machine.h"

namespace carillon {

struct Report {
  Status status;  ///< why the schedules are wrong: rank, strand, op and reason
  RunStats stats;
  /// What is reduced is so in rank order, too, whether the operator needs that or not.
  bool in_rank_order = true;
  [[nodiscard]] bool ok() const { return status.ok(); }
};

/// `inputs`, one per rank, are needed only by algorithms with stages: stages learn real values,
/// and what is proved then holds for those.
Report verify(const TeamCall& call, const Emit& emit,
              std::span<const std::vector<std::byte>> inputs = {});

/// verify for who does so many times, in the memory of the time before.
class Verifier {
 public:
  Verifier();
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  Report verify(const TeamCall& call, const Emit& emit,
                std::span<const std::vector<std::byte>> inputs = {});
  /// The ranks' schedules, one for each, of a single stage.
  Report verify(const TeamCall& call, std::span<const Schedule> schedules);

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

}  // namespace carillon
