// SPDX-License-Identifier: Apache-2.0
//
// The wait ladder of a blocking call: poll while the rank has a core for itself, then yield the
// core, then sleep. Between the polls the host (MPI) gets progress; while asleep, now and then,
// dead peers are looked for.
#pragma once

#include <sched.h>

#include <chrono>

#include "engine/engine.h"
#include "transport/shm/doorbell.h"

namespace carillon {

class Waiter {
 public:
  explicit Waiter(Engine& engine)
      : engine_(engine),
        spin_until_(start_ + std::chrono::microseconds(engine.settings_.spin_us)),
        next_check_(start_ + std::chrono::milliseconds(engine.settings_.dead_peer_ms / 4)),
        spinning_(!engine.oversubscribed_ && engine.settings_.spin_us > 0) {}

  /// How often a single wait polls before the ladder is climbed.
  [[nodiscard]] int polls() const { return spinning_ ? kPolls : 0; }

  template <typename Done>
  void pause(Done done) {
    ++rounds_;
    if (spinning_) {
      if (rounds_ % kRoundsPerIdle == 0) idle();
      spinning_ = std::chrono::steady_clock::now() < spin_until_;
      return;
    }
    if (rounds_ % kYieldsPerIdle == 0) idle();
    if (rounds_ % kYieldsPerClock != 0 || std::chrono::steady_clock::now() - start_ < kYieldFor ||
        !engine_.joined()) {
      sched_yield();
      return;
    }
    sleep(done);
  }

 private:
  static constexpr int kPolls = 128;
  static constexpr int kRoundsPerIdle = 2;
  static constexpr int kYieldsPerIdle = 16;
  static constexpr int kYieldsPerClock = 4;
  static constexpr auto kYieldFor = std::chrono::milliseconds(2);
  static constexpr int kSleepUs = 1000;  // the host MPI waits no longer than this for progress

  static constexpr int kNapUs = 50;  // if nothing tells of what comes over the network
  static constexpr auto kIdleEvery = std::chrono::microseconds(100);

  void idle() {
    if (engine_.idle_ != nullptr) engine_.idle_(engine_.idle_arg_);
  }

  template <typename Done>
  void sleep(Done done) {
    const auto before = std::chrono::steady_clock::now();
    if (before > next_idle_) {
      idle();
      next_idle_ = before + kIdleEvery;
    }
    {
      net::Network* const network = engine_.network();
      const shm::Bell* const bell = engine_.bell_.get();
      shm::Sleep sleep(engine_.segment(), engine_.node_rank(), bell);
      bool finished = false;
      int most_us = kSleepUs;
      int multicasts = -1;
      {
        const Engine::Lock lock(engine_);
        engine_.progress();
        finished = done() || (bell != nullptr && !engine_.ready_to_wait());
        if (bell != nullptr) most_us = engine_.wait_us(kSleepUs);
        multicasts = engine_.multicast_events_.get();
      }
      if (!finished && bell != nullptr) {
        sleep.sleep_on({network->wait_descriptor(), multicasts}, most_us);
      }
      if (!finished && bell == nullptr) sleep.sleep(network == nullptr ? kSleepUs : kNapUs);
    }
    const auto now = std::chrono::steady_clock::now();
    if (now < next_check_) return;
    next_check_ = now + std::chrono::milliseconds(engine_.settings_.dead_peer_ms / 4);
    const Engine::Lock lock(engine_);
    engine_.check_peers();
  }

  Engine& engine_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point spin_until_, next_check_, next_idle_;
  long rounds_ = 0;
  bool spinning_;
};

}  // namespace carillon
