// SPDX-License-Identifier: Apache-2.0
//
// What the servlet has to do with the engine: when it is there, what is left to it, and who moves
// things on meanwhile.
#include <algorithm>
#include <new>

#include "base/log.h"
#include "engine/engine.h"
#include "engine/node.h"
#include "engine/team.h"

namespace carillon {
void Engine::set_up_servlet(const NodePlace& place) {
  if (settings_.servlet == "off" || !joined()) return;
  if (settings_.servlet == "auto" && place.oversubscribed) return;
  auto servlet = Servlet::start(*this, place.used_cores, place.spare_cores);
  if (!servlet.ok()) {
    log(LogLevel::kWarning,
        servlet.status().to_string() + "; collectives make progress in calls into carillon only");
    return;
  }
  const std::lock_guard lock(mutex_);  // the thread is there, and looks at it
  servlet_ = std::move(servlet.value());
}

void Engine::end_servlet() {
  std::unique_ptr<Servlet> ending;
  {
    const std::lock_guard lock(mutex_);  // the thread looks at it
    ending = std::move(servlet_);
  }
}

bool Engine::servlet_has_work() const {
  if (servlet_ == nullptr || !locks_ || waiting_ > 0) return false;
  return std::any_of(active_.begin(), active_.end(), [](const Run* run) {
    const bool begins =
        run->state() != Run::State::kDeferred || run->team().state() == Team::State::kReady;
    return begins && !run->needs_caller() && !run->done();
  });
}

void Engine::Lock::share() {
  if (!held_) engine_.mutex_.lock();
  held_ = true;
  if (!engine_.locks_) engine_.locks_ = true;  // else others may be reading it
}

// The program has one thread: what it posts stays in order.
bool Engine::post(Run& run) {
  if (threaded_ || servlet_ == nullptr || !posted_.push(run)) return false;
  servlet_->wake_for_posted();
  return true;
}

void Engine::start_all_posted() {
  while (Run* const run = posted_.pop()) {
    try {
      start(*run);
    } catch (const std::bad_alloc&) {
      const Status status(Code::kNoMemory, "out of memory where a collective was started");
      fail(run->team(), status);
      run->fail(status);
    }
  }
}

void Engine::hand_over(Lock& lock) {
  lock.share();
  if (waiting_ > 0) progress();  // who waits may be asleep, and the servlet stands aside for it
  const bool naps = servlet_->wakes_from_nap();
  lock.release();  // which it would wait for at once
  servlet_->wake(naps);
}

Engine::Waiting::Waiting(Engine& engine) : engine_(engine) {
  if (!engine.has_servlet()) return;
  const Lock lock(engine);
  counts_ = engine.locks_;
  if (counts_) ++engine.waiting_;
}

Engine::Waiting::~Waiting() {
  if (!counts_) return;
  const Lock lock(engine_);
  --engine_.waiting_;
  if (engine_.servlet_has_work()) engine_.servlet_->wake();
}

}  // namespace carillon
