// SPDX-License-Identifier: Apache-2.0
#include "engine/servlet.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "base/pause_core.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "engine/until_quiet.h"
#include "team/near_network.h"
#include "transport/shm/doorbell.h"

namespace carillon {
namespace {

constexpr auto kPollFor = std::chrono::microseconds(50);
constexpr int kPausesPerPoll = 16;
constexpr int kNapUs = 5000;  // somebody wakes it earlier if there is anything to do
constexpr auto kSoon = std::chrono::microseconds(100);
constexpr int kSoonInARow = 16;             // shorter messages are not made to wait
constexpr int kBlindNapUs = 50;             // if nothing tells of what comes over the network
constexpr std::uint64_t kTurnNs = 100'000;  // Linux's least

// The program's handlers run on the program's threads: the thread starts with all signals blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

// Linux 6.12 and later let a thread ask for turns of another length, and who is woken and asks for
// shorter ones than the thread that has the core gets it at once. Else each step of a collective
// may wait for the end of a computation's turn, some milliseconds. Older ones ignore it.
void ask_for_short_turns() {
  struct Attributes {  // as sched_setattr(2) has them
    std::uint32_t size = sizeof(Attributes), policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
  } own;
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != SCHED_OTHER) return;
  own.runtime_ns = kTurnNs;
  syscall(SYS_sched_setattr, 0, &own, 0);
}

// A launcher that binds each rank to a core binds its threads, too, but the kernel lets a thread
// take back what only a launcher, and no container, has forbidden.
// True: it has a core that no rank may run on.
bool take_place(std::thread& thread, const cpu_set_t& used, const Cores& near) {
  cpu_set_t all, allowed;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  const pthread_t handle = thread.native_handle();
  if (pthread_setaffinity_np(handle, sizeof all, &all) != 0 ||
      pthread_getaffinity_np(handle, sizeof allowed, &allowed) != 0) {
    return false;
  }
  const ServletPlace place = place_servlet(allowed, used, near);
  return pthread_setaffinity_np(handle, sizeof place.cores, &place.cores) == 0 && place.alone;
}

}  // namespace

ServletPlace place_servlet(const cpu_set_t& allowed, const cpu_set_t& used, const Cores& near) {
  const auto is_near = [&](int core) {
    return static_cast<std::size_t>(core) < near.size() && near[static_cast<std::size_t>(core)];
  };
  int best = -1;
  for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
    if (!CPU_ISSET(core, &allowed) || CPU_ISSET(core, &used)) continue;
    if (best < 0 || (is_near(core) && !is_near(best))) best = core;
  }
  if (best < 0) return {.cores = allowed};
  ServletPlace place{.alone = true};
  CPU_SET(best, &place.cores);
  return place;
}

Result<std::unique_ptr<Servlet>> Servlet::start(Engine& engine, const cpu_set_t& used, bool spare) {
  std::unique_ptr<Servlet> servlet(new Servlet(engine));
  servlet->spare_ = spare;
  try {
    const SignalsBlocked blocked;
    servlet->thread_ = std::thread([raw = servlet.get()] { raw->run(); });
  } catch (const std::system_error& error) {
    return Status(Code::kSystem, std::string("no thread for the servlet: ") + error.what());
  }
  pthread_setname_np(servlet->thread_.native_handle(), "carillon");
  const net::Network* const network = engine.network();
  const Cores near = network != nullptr ? cores_near_network(network->name()) : Cores();
  servlet->alone_.store(take_place(servlet->thread_, used, near), std::memory_order_relaxed);
  return servlet;
}

Servlet::~Servlet() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(engine_.mutex_);
    stops_ = true;
    wake();
  }
  thread_.join();
}

void Servlet::wake(bool from_nap) {
  if (from_nap) {
    wake_from_nap();
  } else {
    work_.notify_one();
  }
}

void Servlet::wake_from_nap() {
  shm::wake_own(engine_.segment(), engine_.node_rank(), engine_.bell_.get());
}

// It had the mutex a moment ago. If it has gone to sleep since, it has looked for what was posted
// either after that was there, or before it said that it sleeps.
void Servlet::wake_for_posted() {
  if (idle_.load(std::memory_order_seq_cst)) {  // partner: run()
    // It waits by now; notified with the lock held, it would wait for that.
    { const std::lock_guard lock(engine_.mutex_); }
    work_.notify_one();
  } else if (engine_.segment().header().sleepers.load(std::memory_order_seq_cst) != 0) {
    wake_from_nap();  // partner: Sleep::Sleep
  }
}

void Servlet::run() {
  ask_for_short_turns();
  Held held(engine_.mutex_);
  while (!stops_) {
    engine_.start_posted();
    if (!engine_.servlet_has_work()) {
      idle_.store(true, std::memory_order_seq_cst);  // partner: wake_for_posted()
      if (engine_.posted_.empty()) work_.wait(held);
      idle_.store(false, std::memory_order_relaxed);
      continue;
    }
    if (spare_) poll(held);
    nap(held);
  }
}

// Where nobody else wants the core, what comes soon is not slept for.
void Servlet::poll(Held& held) {
  const auto end = std::chrono::steady_clock::now() + kPollFor;
  while (!stops_ && engine_.servlet_has_work() && std::chrono::steady_clock::now() < end) {
    engine_.progress_and_watch(Engine::Mover::kServlet);
    held.unlock();
    for (int i = 0; i < kPausesPerPoll; ++i) pause_core();
    held.lock();
    engine_.start_posted();
  }
}

// A long message comes packet by packet. To be woken by each takes a third of a core at 500 Mbit/s,
// from a computation unless there are spare cores: what comes one right after another is let
// gather.
void Servlet::sleep_on_network(shm::Sleep& sleep, std::array<int, 2> descriptors, int most_us,
                               int gather_us) {
  if (gather_us > 0 && sleep.sleep_on({-1, -1}, std::min(most_us, gather_us))) return;  // it rang
  const auto begin = Clock::now();
  sleep.sleep_on(descriptors, most_us);
  soon_ = Clock::now() - begin < kSoon ? soon_ + 1 : 0;
}

// 0: not at all. With the engine's mutex.
int Servlet::gather_us() {
  if (turnover_ != engine_.turnover_) {
    turnover_ = engine_.turnover_;
    in_flight_since_ = Clock::now();
  }
  if (spare_ || alone_.load(std::memory_order_relaxed) || soon_ < kSoonInARow) return 0;
  const auto in_flight =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - in_flight_since_);
  return nap_.next_us(in_flight.count(), engine_.network()->wire().counters().completions);
}

// With the engine's mutex.
void Servlet::progress_until_quiet() {
  net::Network* const network = engine_.network();
  look_until_quiet(
      [&] {
        return network != nullptr ? network->wire().counters().completions : std::uint64_t{0};
      },
      [&] { engine_.progress_and_watch(Engine::Mover::kServlet); },
      [&] { return engine_.servlet_has_work(); });
}

void Servlet::nap(Held& held) {
  const shm::Bell* const bell = engine_.bell_.get();
  const net::Network* const network = engine_.network();
  held.unlock();
  {
    shm::Sleep sleep(engine_.segment(), engine_.node_rank(), bell);
    held.lock();
    engine_.start_posted();
    if (stops_ || !engine_.servlet_has_work()) return;
    progress_until_quiet();
    napping_ = engine_.servlet_has_work() && (bell == nullptr || engine_.ready_to_wait());
    const int most_us = bell == nullptr ? kNapUs : engine_.wait_us(kNapUs);
    const int multicasts = engine_.multicast_events_.get();
    const bool sleeps = napping_;
    const int lets_gather_us = sleeps && bell != nullptr ? gather_us() : 0;
    held.unlock();
    if (sleeps && bell != nullptr) {
      sleep_on_network(sleep, {network->wait_descriptor(), multicasts}, most_us, lets_gather_us);
    } else if (sleeps) {
      sleep.sleep(network == nullptr ? most_us : kBlindNapUs);
    }
  }
  held.lock();
  napping_ = false;
  engine_.start_posted();
  // Who has begun to wait may have looked before what the bell rang for was there.
  if (engine_.locks_ && engine_.waiting_ > 0) shm::wake(engine_.segment(), engine_.node_rank());
}

}  // namespace carillon
