// SPDX-License-Identifier: Apache-2.0
//
// Teams of several nodes whose alltoallvs are surveyed though they are small (select/surveys.h).
#pragma once

#include <memory>

#include "api/objects.h"

namespace carillon::test {

/// Before the context's first collective: as if bruck_two_phase, or merged where that is better,
/// were as good as free, but not making its schedules for new tables.
inline void take_two_phases_for_cheap(crl_context& context) {
  Rules rules = default_rules();
  rules.table_costs.find_per_rank = -1e9;
  rules.table_costs.make_per_rank = 2e9;
  context.plans = std::make_unique<PlanCache>(rules, false);
}

}  // namespace carillon::test
