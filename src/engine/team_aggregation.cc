// SPDX-License-Identifier: Apache-2.0
//
// A team's group of a switch: joined while the team is made, and left when nobody needs it.
#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "transport/aggregate/one_switch.h"

namespace carillon {

// Launchers do not pass all variables on to other nodes: one of the ranks that have it says so.
bool Team::all_want_switch(std::span<const SwitchWish::State> states) const {
  const auto none = std::ranges::find(states, SwitchWish::State::kNone);
  const auto some = std::ranges::find_if(
      states, [](SwitchWish::State state) { return state != SwitchWish::State::kNone; });
  if (none != states.end() && some - states.begin() == rank() && !engine_.nameless_switch_said()) {
    log(LogLevel::kWarning, "the hosts do without a switch: rank " +
                                std::to_string(none - states.begin()) + " of a team of " +
                                std::to_string(size()) +
                                " names none in CARILLON_SWITCH; is it set on all nodes?");
  }
  return std::ranges::all_of(
      states, [](SwitchWish::State state) { return state == SwitchWish::State::kWanted; });
}

void Team::begin_aggregation() {
  const bool fits = limits_.nodes != nullptr && aggregate::one_switch_joins(limits_.nodes->count());
  if (!wants_aggregation_ || !fits) return become_ready();
  aggregation_ = std::make_unique<TeamAggregation>(oob_, *limits_.nodes, engine_.switch_wish());
}

// True when it is over: there is a group, or there will be none.
bool Team::set_up_aggregation() {
  const auto over = aggregation_->set_up();
  // By a collective that is under way, while an exchange of the setup's was begun.
  if (state() == State::kFailed) return false;
  if (!over.ok()) fail(over.status());
  if (!over.ok() || !over.value()) return false;
  if (aggregation_->status().ok()) {
    limits_.aggregates = limits_.aggregation_pays = true;
    engine_.start_aggregating(*aggregation_);
  } else {
    engine_.stop_aggregating(aggregation_->status(), rank() == 0);
    aggregation_.reset();
  }
  return true;
}

// Teams that are made later do without a switch that is gone. One line for the team, and one of who
// knows why.
void Team::progress_aggregation() {
  if (aggregation() == nullptr) return;
  if (Status status = aggregation_->progress(); !status.ok()) return fail(std::move(status));
  Status why;
  bool was_told = false;
  if (!aggregation_->take_fall_back(&why, &was_told)) return;
  engine_.stop_aggregating(why, rank() == 0 || !was_told);
}

}  // namespace carillon
