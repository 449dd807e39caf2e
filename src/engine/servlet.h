// SPDX-License-Identifier: Apache-2.0
//
// The servlet's thread in this process: it moves non-blocking collectives on while the program
// computes. It sleeps unless some are in flight, and then on what a waiting rank sleeps on; while a
// thread of the program waits in carillon, that one does the work. It never calls the program:
// users' operators, the exchanges that teams are made by and the host's progress stay with the
// program's threads.
//
// The threads of a node share one core, if there is one that no rank may run on.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/status.h"
#include "engine/nap_length.h"
#include "team/numa.h"
#include "transport/shm/doorbell.h"

namespace carillon {

class Engine;

/// Where the threads of a node's servlet run.
struct ServletPlace {
  bool alone = false;  ///< on one core that no rank of the machine may run on
  cpu_set_t cores = {};
};

/// `allowed` are the cores that this process could use, `used` those that any rank of the machine
/// runs on. Of several that nobody uses it is one that is `near` the network, if there is one.
ServletPlace place_servlet(const cpu_set_t& allowed, const cpu_set_t& used, const Cores& near);

class Servlet {
 public:
  /// The thread, asleep. `spare`: there is a core for it beside each rank's, so that it may poll a
  /// little before it sleeps.
  static Result<std::unique_ptr<Servlet>> start(Engine& engine, const cpu_set_t& used, bool spare);
  /// Ends the thread.
  ~Servlet();
  Servlet(const Servlet&) = delete;
  Servlet& operator=(const Servlet&) = delete;

  /// There may be something to do. With the engine's mutex held.
  void wake() { wake(wakes_from_nap()); }
  /// In two steps: with the mutex, how it is to be woken; once, for to run it may have to wait for
  /// a core. And then without.
  bool wakes_from_nap() { return std::exchange(napping_, false); }
  void wake(bool from_nap);
  /// So after a post, without the mutex.
  void wake_for_posted();

 private:
  explicit Servlet(Engine& engine) : engine_(engine) {}
  using Held = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;
  void run();
  void poll(Held& held);
  void nap(Held& held);
  void wake_from_nap();
  void sleep_on_network(shm::Sleep& sleep, std::array<int, 2> descriptors, int most_us,
                        int gather_us);
  int gather_us();
  void progress_until_quiet();

  Engine& engine_;
  bool spare_ = false;
  // No rank's computation wants its core. Whoever has started the thread says so a little later.
  std::atomic<bool> alone_ = false;
  int soon_ = 0;  // so many sleeps on the network were short, one after another
  NapLength nap_;
  std::uint64_t turnover_ = 0;  // the engine's, since then
  Clock::time_point in_flight_since_;
  // The rest with the engine's mutex.
  bool stops_ = false;
  bool napping_ = false;
  // It is about to wait for `work_`, and looks once more for what was posted.
  std::atomic<bool> idle_ = false;
  std::condition_variable work_;
  std::thread thread_;
};

}  // namespace carillon
