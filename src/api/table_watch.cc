// SPDX-License-Identifier: Apache-2.0
#include "api/table_watch.h"

#include <algorithm>

namespace carillon {

bool TableWatch::surveys(const PlanCache& plans, const Shared& shared, const TeamTerms& terms) {
  if (!decided_ && plans.needs_surveys(shared, terms)) {
    surveys_.emplace(shared.ranks, terms.limits, plans.table_costs());
  }
  decided_ = true;
  return surveys_.has_value();
}

Result<TableWatch::Next> TableWatch::next(PlanCache& plans, const Shared& shared,
                                          const Local& local, Rank rank, const TeamTerms& terms) {
  const AlgorithmChoice& choice = surveys_->next(local.tables);
  auto* place = std::find_if(known_.begin(), known_.end(), [&](const Next& known) {
    return known.planned.plan != nullptr && known.choice == choice;
  });
  if (place == known_.end()) {
    auto planned = plans.find(shared, local, rank, {terms.limits, terms.same_settings, choice});
    if (!planned.ok()) return planned.status();
    std::rotate(known_.begin(), known_.end() - 1, known_.end());
    place = known_.begin();
    *place = {.planned = planned.value(), .choice = choice};
  }
  place->note = surveys_->note();
  return *place;
}

}  // namespace carillon
