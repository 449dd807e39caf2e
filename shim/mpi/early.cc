// SPDX-License-Identifier: Apache-2.0
#include "early.h"

#include <sched.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "flights.h"
#include "process.h"
#include "stats.h"
#include "thread_cache.h"

namespace carillon::shim {
namespace {

using Lock = FlightsLock;

std::atomic<int> g_agreeing = 0;  // communicators whose team is in the making

// The team could not be made: the host does what was started meanwhile, in the same order on all
// ranks, and on a communicator where nothing else happens.
void give_to_host(Communicator& communicator, Flight& flight) {
  if (flight.request != nullptr) (void)crl_request_wait(&flight.request);
  if (communicator.broken != CRL_OK) {
    flight.ended = communicator.broken;
    return;
  }
  communicator.uncount(flight.counted);
  count_left(flight.counted, communicator.reason);
  flight.unpack = nullptr;
  flight.by_host = true;
  flight.left = communicator.reason;
  flight.code = flight.host_call(communicator.bootstrap.comm_for_program(), &flight.host_request);
}

// The communicator's flights, which are early, and not the host's.
std::vector<Flight*> early_ones(const Communicator& communicator) {
  std::vector<Flight*> early;
  for (Flight* const flight : flights().flying) {
    const bool is_of =
        (flight->held & Flight::kEarly) != 0 && flight->communicator == &communicator;
    if (is_of && !flight->by_host && flight->ended == CRL_OK) early.push_back(flight);
  }
  return early;
}

// With the mutex held. None that is started later is early. The communicator may be gone then.
void stop_agreeing(Communicator& communicator) {
  for (Flight* const flight : flights().flying) {
    if (flight->communicator == &communicator) {
      flight->held &= static_cast<std::uint8_t>(~Flight::kEarly);
    }
  }
  std::erase(flights().agreeing, &communicator);
  // Partners: Starting, which finds the team as it is now; destroy_freed_teams.
  communicator.agreeing.store(false, std::memory_order_release);
}

// The team has failed. False: another thread is just starting one, or has meanwhile.
bool leave_team(Communicator& communicator) {
  std::vector<Flight*> early;
  {
    const Lock lock(flights().mutex);
    early = early_ones(communicator);
  }
  for (Flight* const flight : early) give_to_host(communicator, *flight);
  crl_team_h team = nullptr;
  {
    const Lock lock(flights().mutex);
    if (communicator.starting > Starting::by_this_thread(communicator)) return false;
    if (!early_ones(communicator).empty()) return false;
    team = std::exchange(communicator.team, nullptr);
    stop_agreeing(communicator);
  }
  crl_team_destroy(team);
  return true;
}

// Looks whether the team is ready, or never will be.
void settle(Communicator& communicator) {
  const crl_status_t status = crl_team_test(communicator.team);
  if (status == CRL_IN_PROGRESS) return;
  if (status != CRL_OK) {
    communicator.reason = Reason::kNotServed;
    if (status != CRL_ERR_UNSUPPORTED) communicator.broken = status;
    if (!leave_team(communicator)) return;
  } else {
    communicator.bootstrap.release();
    const Lock lock(flights().mutex);
    stop_agreeing(communicator);
  }
  g_agreeing.fetch_sub(1, std::memory_order_relaxed);
  add_to(g_flights, -1);
}

}  // namespace

constinit thread_local const Starting* Starting::t_innermost = nullptr;

Starting::Starting(Communicator& communicator) {
  // Partner: stop_agreeing.
  if (!communicator.agreeing.load(std::memory_order_acquire)) [[likely]]
    return;
  const Lock lock(flights().mutex);
  if (!communicator.agreeing.load(std::memory_order_relaxed)) return;
  ++communicator.starting;
  communicator_ = &communicator;
  outer_ = std::exchange(t_innermost, this);
}

void Starting::end() {
  const Lock lock(flights().mutex);
  --communicator_->starting;
  communicator_ = nullptr;
  t_innermost = outer_;
}

int Starting::by_this_thread(const Communicator& communicator) {
  int count = 0;
  for (const Starting* one = t_innermost; one != nullptr; one = one->outer_) {
    if (one->communicator_ == &communicator) ++count;
  }
  return count;
}

void settle_agreements() {
  std::vector<Communicator*> agreeing;
  {
    const Lock lock(flights().mutex);
    if (flights().agreeing.empty()) return;
    agreeing = flights().agreeing;
  }
  for (Communicator* const communicator : agreeing) settle(*communicator);
}

void watch_agreement(Communicator& communicator) {
  g_agreeing.fetch_add(1, std::memory_order_relaxed);
  add_to(g_flights, 1);
  const Lock lock(flights().mutex);
  flights().agreeing.push_back(&communicator);
}

void await_team(MPI_Comm comm) {
  if (!settles_slowly() || is_sweeping() || t_cache.depth > 0) return;
  const auto is_agreeing = [comm] {
    const Lock lock(flights().mutex);
    const auto& agreeing = flights().agreeing;
    return std::any_of(agreeing.begin(), agreeing.end(),
                       [comm](const Communicator* one) { return one->handle == comm; });
  };
  while (is_agreeing()) {
    advance_flights();
    sched_yield();
  }
}

bool settles_slowly() { return any_flights() && g_agreeing.load(std::memory_order_relaxed) > 0; }

}  // namespace carillon::shim
