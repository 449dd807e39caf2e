// SPDX-License-Identifier: Apache-2.0
//
// The plans of a team's alltoallvs where surveys of their tables decide (select/surveys.h). All
// functions with the engine's lock.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "api/plans.h"
#include "select/surveys.h"

namespace carillon {

class TableWatch {
 public:
  /// Whether such a team's alltoallvs are surveyed; the first answer holds. Of each call that is
  /// not, once: it is counted here.
  bool surveys(const PlanCache& plans, const Shared& shared, const TeamTerms& terms);
  /// The plan of the call that begins now, and of which choice it is. Only if surveys() says so.
  struct Next {
    PlannedCall planned;
    AlgorithmChoice choice;
    std::int64_t note = 0;
  };
  Result<Next> next(PlanCache& plans, const Shared& shared, const Local& local, Rank rank,
                    const TeamTerms& terms);
  /// How the calls so far were done, and why.
  struct Decision {
    const Algorithm* algorithm;
    Why why;
    std::uint64_t calls;
  };
  [[nodiscard]] std::vector<Decision> decisions() const;
  /// Null: there are none.
  [[nodiscard]] Surveys* surveys() { return surveys_ ? &*surveys_ : nullptr; }

 private:
  // Of a team that is not surveyed: all calls are done alike. Its algorithm is null before.
  Decision unsurveyed_{.algorithm = nullptr, .why = Why::kUnknown, .calls = 0};
  std::optional<Surveys> surveys_;
  std::array<Next, 4> known_;  // of the algorithms that surveys choose, the newest first
};

}  // namespace carillon
