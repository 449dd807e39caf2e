// SPDX-License-Identifier: Apache-2.0
#include "api/table_watch.h"

#include <algorithm>
#include <string_view>

namespace carillon {

bool TableWatch::surveys(const PlanCache& plans, const Shared& shared, const TeamTerms& terms) {
  if (surveys_) return true;
  if (unsurveyed_.algorithm == nullptr) {
    const std::optional<Why> why_not = plans.why_no_surveys(shared, terms);
    if (!why_not) {
      surveys_.emplace(shared.ranks, terms.limits, plans.table_costs());
      return true;
    }
    unsurveyed_ = {.algorithm = &plans.algorithm_of(shared, terms), .why = *why_not, .calls = 0};
  }
  ++unsurveyed_.calls;
  return false;
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

namespace {

std::string_view done_by(Why why) {
  switch (why) {
    case Why::kSurvey: return "alltoallv.survey";
    case Why::kPays: return "alltoallv.bruck_two_phase";
    case Why::kMerged: return "alltoallv.merged";
    default: return "alltoallv.pairwise";
  }
}

}  // namespace

std::vector<TableWatch::Decision> TableWatch::decisions() const {
  std::vector<Decision> all;
  if (unsurveyed_.calls > 0) all.push_back(unsurveyed_);
  for (std::size_t i = 0; surveys_ && i < kWhys; ++i) {
    if (surveys_->calls()[i] == 0) continue;
    const Why why = static_cast<Why>(i);
    all.push_back(
        {.algorithm = find_algorithm(done_by(why)), .why = why, .calls = surveys_->calls()[i]});
  }
  return all;
}

}  // namespace carillon
