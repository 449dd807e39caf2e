// SPDX-License-Identifier: Apache-2.0
//
// How runs begin, move on and end.
#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/run_brief-inl.h"
#include "engine/team.h"

namespace carillon {
namespace {

constexpr int kFirstPolls = 1000;  // of a blocking call before it looks at anything else
constexpr int kFirstPollsOversubscribed = 20;

// Of what is being thrown.
[[gnu::noinline]] Status thrown_by_run() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, "out of memory in a collective"};
  } catch (const std::exception& error) {
    return {Code::kInternal, std::string("a collective threw: ") + error.what()};
  } catch (...) {
    return {Code::kInternal, "a user's operator threw what is no std::exception"};
  }
}

[[gnu::noinline]] Status thrown_while_planning() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, "out of memory while a collective was planned"};
  } catch (const std::exception& error) {
    return {Code::kInternal, std::string("planning a collective threw: ") + error.what()};
  }
}

// What the run throws (a user's operator, or memory that cannot be had) ends the run.
inline bool progress_run(Run& run, int polls) {
  try {
    return run.progress(polls);
  } catch (...) {
    run.fail(thrown_by_run());
  }
  return true;
}

// The caller's places for the run must not go while the run is under way, and who moves it on may
// be anybody: nothing is thrown.
template <typename Body>
Status planned(Body body) {
  try {
    return body();
  } catch (...) {
    return thrown_while_planning();
  }
}

}  // namespace

void Engine::start(Run& run) {
  Team& team = run.team();
  // Both lists have it, or none if this throws.
  if (active_.size() == active_.capacity()) active_.reserve(2 * active_.size() + 8);
  if (team.state() == Team::State::kFailed) {
    run.fail(team.status());
  } else if (team.may_begin()) {
    if (!begin(run)) forget_ended();  // the others of its team
  } else {
    team.defer(run);
    ++deferred_;
  }
  ++turnover_;
  if (!run.done()) active_.push_back(&run);
}

// False: the run has failed, and its team with it.
bool Engine::begin(Run& run) {
  try {
    if (run.has_plan() || plan(run)) [[likely]] {
      run.team().begin(run);
      return true;
    }
  } catch (...) {
    fail(run, thrown_while_planning());
  }
  return false;
}

bool Engine::plan(Run& run) {
  auto plan = stages_->plan(run);
  if (plan.ok()) {
    run.set_plan(plan.value());
  } else {
    fail(run, plan.status());
  }
  return plan.ok();
}

void Engine::fail(Run& run, const Status& why) {
  run.team().fail(why);
  run.fail(why);
}

void Engine::begin_deferred() {
  for (Team* team : teams_) {
    Run* run = team->next_deferred();
    while (run != nullptr && begin(*run)) run = team->next_deferred();
  }
  deferred_ = static_cast<int>(std::count_if(active_.begin(), active_.end(), [](const Run* run) {
    return run->state() == Run::State::kDeferred;
  }));
}

void Engine::forget_ended() {
  turnover_ += std::erase_if(active_, [](const Run* run) { return run->done(); });
}

void Engine::fail(Team& team, const Status& why) {
  if (team.state() != Team::State::kFailed) team.fail(why);
  forget_ended();
}

bool Engine::move_on(Run& run, int polls) {
  if (run.done()) return true;
  if (run.state() == Run::State::kDeferred || !progress_run(run, polls)) return false;
  Team& team = run.team();
  if (!run.status().ok()) {
    team.fail(run.status());
    return true;
  }
  if (run.plan().learned.length == 0) [[likely]] {
    team.complete(run);
    return true;
  }
  return begin_next_stage(run);
}

// True: the run has failed.
bool Engine::begin_next_stage(Run& run) {
  Team& team = run.team();
  if (!team.oldest(run.collective())) return false;
  Status status = planned([&]() -> Status {
    auto plan = stages_->plan(run);
    if (plan.ok()) run.next_stage(plan.value());
    return plan.status();
  });
  if (!status.ok()) {
    team.fail(std::move(status));
    return true;
  }
  team.set_staged(run.plan().learned.length > 0);
  return false;
}

bool Engine::look(Run& run) {
  // A poll for one run keeps the others from what their peers may be polling for.
  constexpr int kLooks = 32;
  const bool alone = active_.size() == 1 && agreeing_.empty();
  const int polls = oversubscribed_ ? kFirstPollsOversubscribed : kFirstPolls;
  for (int i = 0; !run.done() && i < kLooks; ++i) progress(alone && i == 0 ? polls : 0);
  return run.done();
}

void Engine::run_to_end(Run& run) {
  {
    const Lock lock(*this);
    if (active_.empty() && agreeing_.empty() && run.team().may_begin()) {
      const int polls = oversubscribed_ ? kFirstPollsOversubscribed : kFirstPolls;
      if (run.is_brief() && !measured_ && run.team().has_room_for_one()) [[likely]] {
        if (run.team().run_briefly(run, polls)) return;
      } else if (!begin(run) || move_on(run, polls)) {
        return;
      }
      active_.push_back(&run);
    } else {
      start(run);
    }
  }
  wait(run);
}

}  // namespace carillon
