// SPDX-License-Identifier: Apache-2.0
#include "flight.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include "early.h"
#include "errors.h"
#include "flights.h"
#include "heap_pins.h"
#include "host_progress.h"
#include "observe.h"
#include "persistent.h"
#include "process.h"
#include "request_table.h"
#include "stats.h"
#include "world.h"

namespace carillon::shim {

constinit std::atomic<int> g_flights = 0;
constinit std::atomic<int> g_failed_flights = 0;
constinit FlightsForEver g_all_flights;

namespace {

using Lock = FlightsLock;

thread_local bool t_sweeping = false;

// The callbacks of the generalized requests.

int tell_status(void* extra, MPI_Status* status) {
  tell_nothing(status);
  const Flight& flight = *static_cast<const Flight*>(extra);
  return flight.told ? MPI_SUCCESS : flight.code;
}

// Partner: destroy_freed_teams, which then finds nobody in the team.
void leave_communicator(const Flight& flight) { add_to(flight.communicator->in_flight, -1); }

// The host may hold a lock of its own while it calls this, and who holds one of carillon's may wait
// for the host's (in an operator, or as a team is being made): so nothing is locked here.
int recycle(void* extra) {
  auto* const flight = static_cast<Flight*>(extra);
  flight->has_handle = false;
  if (flight->code != MPI_SUCCESS) {
    add_to(g_failed_flights, -1);
    add_to(g_flights, -1);
    leave_communicator(*flight);
  }
  std::atomic<Flight*>& given_back = flights().given_back;
  flight->next = given_back.load(std::memory_order_relaxed);
  // Partner: take_back.
  while (!given_back.compare_exchange_weak(flight->next, flight, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  return MPI_SUCCESS;
}

// With the mutex held. What the host has given back serves again; its handle may be another
// request's by now.
void take_back(Flights& all) {
  if (all.given_back.load(std::memory_order_relaxed) == nullptr) return;
  // Partner: recycle.
  Flight* next = all.given_back.exchange(nullptr, std::memory_order_acquire);
  while (Flight* const flight = next) {
    next = flight->next;
    if (flight->code != MPI_SUCCESS) all.failed.erase(flight->handle);
    if (flight->host_reduction.failed() != MPI_SUCCESS) {
      delete flight;  // what failed is not to be the next one's
    } else {
      all.spare.push_back(flight);
    }
  }
}

int refuse_cancel(void* /*extra*/, int /*complete*/) { return MPI_SUCCESS; }

// Whether the collective has ended.
bool ended(Flight& flight) {
  if (!flight.by_host) {
    if (flight.request != nullptr) flight.ended = crl_request_test(&flight.request);
    return flight.ended != CRL_IN_PROGRESS;
  }
  if (flight.code != MPI_SUCCESS) return true;
  const InsideHost guard;
  int done = 0;
  flight.code = host().Test(&flight.host_request, &done, MPI_STATUS_IGNORE);
  return done != 0 || flight.code != MPI_SUCCESS;
}

// Nothing of the program's is used from here on, but by a persistent one, which may begin again.
void release(Flight& flight) {
  if (flight.persistent) {
    flight.by_host = false;
    return;
  }
  unpin_blocks(flight);
  if (flight.unpack) flight.unpack = nullptr;
  if (flight.staging) flight.staging.reset();
  if (flight.kept) flight.kept.reset();
  flight.by_host = false;
  flight.held = 0;
  if (flight.host_call) flight.host_call = nullptr;
  // Else the program is told on that communicator first.
  if (flight.code == MPI_SUCCESS) leave_communicator(flight);
}

// The flight has ended, and is in no list any more.
void complete_handle(Flight* flight) {
  if (flight->persistent) return land_persistent(flight);
  const bool well = flight->code == MPI_SUCCESS;
  {
    const Lock lock(flights().mutex);
    flights().by_handle.erase(flight->handle);
    if (!well) {
      add_to(g_failed_flights, 1);
      take_back(flights());
      flights().failed.insert(flight->handle, flight);
    }
  }
  {
    const InsideHost guard;
    host().Grequest_complete(flight->handle);  // the flight may be gone then
  }
  // Not before: who finds none leaves its requests to the host, and some hosts do not wait for a
  // generalized one. One that has failed counts until the program is told.
  if (well) add_to(g_flights, -1);
}

// The same, but that its handle stays, and is good for another flight.
void keep_handle(Flight* flight) {
  if (flight->persistent) return end_persistent(flight);
  add_to(g_flights, -1);
  const Lock lock(flights().mutex);
  flights().spare.push_back(flight);
}

// Waits for the end of what carillon does, if need be, and looks how it was.
void conclude(Flight& flight) {
  const ObservedEnd observed(flight);
  if (!flight.by_host) {
    if (flight.request != nullptr) flight.ended = crl_request_wait(&flight.request);
    flight.code = flight.ended == CRL_OK ? MPI_SUCCESS : error_of(flight.ended);
    if (flight.ended != CRL_OK) {
      say_carillon_error(g_host.comm_null, flight.ended,
                         ("MPI_" + call_name(flight.counted)).c_str());
    }
    if (flight.ended == CRL_OK && flight.unpack) flight.code = flight.unpack();
    if (flight.code == MPI_SUCCESS && flight.staging) flight.code = give_back(*flight.staging);
    if (flight.host_reduction.failed() != MPI_SUCCESS) flight.code = flight.host_reduction.failed();
  }
  release(flight);
}

// Which algorithm does it is known before it has ended; then carillon forgets.
bool stays_held(Flight& flight) {
  if ((flight.held & Flight::kEarly) != 0) return true;
  flight.tally.algorithm = flight.request == nullptr ? "" : crl_request_algorithm(flight.request);
  if (flight.tally.algorithm == nullptr) return true;
  flight.held = 0;
  return false;
}

constexpr std::size_t kMostLooks = 8;
struct Landed {
  std::array<Flight*, kMostLooks> flights{};
  std::size_t count = 0;
};

// Takes those that have ended out of the lists. Looks at a few at a time, in turn: each look makes
// progress with all.
Landed collect_ended() {
  Landed landed;
  Flights& all = flights();
  const Lock lock(all.mutex);
  for (std::size_t looks = std::min(kMostLooks, all.flying.size()); looks > 0; --looks) {
    if (all.next >= all.flying.size()) all.next = 0;
    Flight* const flight = all.flying[all.next];
    if ((flight->held != 0 && stays_held(*flight)) || !ended(*flight)) {
      ++all.next;
      continue;
    }
    landed.flights[landed.count++] = flight;
    all.flying.erase(all.flying.begin() + static_cast<std::ptrdiff_t>(all.next));
  }
  return landed;
}

void sweep() {
  progress_worlds();
  settle_agreements();
  const Landed landed = collect_ended();
  for (std::size_t i = 0; i < landed.count; ++i) {
    conclude(*landed.flights[i]);
    complete_handle(landed.flights[i]);
  }
}

bool still_flying() {
  const Lock lock(flights().mutex);
  return !flights().flying.empty() || !flights().agreeing.empty();
}

}  // namespace

void take_off(Flight* flight) {
  flight->told = false;
  add_to(g_flights, 1);
  const Lock lock(flights().mutex);
  if (!flight->persistent) {
    const bool early = flight->communicator->agreeing.load(std::memory_order_relaxed);
    flight->held |= early ? Flight::kEarly : std::uint8_t{0};
  }
  flights().flying.push_back(flight);
}

void know_handle(Flight* flight) {
  const Lock lock(flights().mutex);
  flights().by_handle.insert(flight->handle, flight);
}

void forget_handle(MPI_Request handle) {
  const Lock lock(flights().mutex);
  flights().by_handle.erase(handle);
}

Flight* find_flight(MPI_Request handle) {
  const Lock lock(flights().mutex);
  return flights().by_handle.find(handle);
}

Flight* new_flight(Communicator& communicator, std::size_t counted) {
  be_called_by_host();
  Flight* flight = nullptr;
  {
    const Lock lock(flights().mutex);
    take_back(flights());
    if (!flights().spare.empty()) {
      flight = flights().spare.back();
      flights().spare.pop_back();
    }
  }
  if (flight == nullptr) flight = new Flight();
  flight->communicator = &communicator;
  flight->counted = counted;
  flight->observers = 0;
  flight->code = MPI_SUCCESS;
  flight->ended = CRL_OK;
  add_to(communicator.in_flight, 1);
  return flight;
}

void drop_flight(Flight* flight) {
  release(*flight);
  const Lock lock(flights().mutex);
  flights().spare.push_back(flight);
}

int launch_flight(Flight* flight, MPI_Request* handle) {
  if (!flight->has_handle) {
    const InsideHost guard;
    const int status =
        host().Grequest_start(tell_status, recycle, refuse_cancel, flight, &flight->handle);
    if (status != MPI_SUCCESS) {
      conclude(*flight);
      if (flight->code != MPI_SUCCESS) leave_communicator(*flight);
      const Lock lock(flights().mutex);
      flights().spare.push_back(flight);
      return status;
    }
    flight->has_handle = true;
    know_handle(flight);
  }
  if (t_observed != 0) [[unlikely]]
    observe_launch(flight);
  take_off(flight);
  *handle = flight->handle;
  return MPI_SUCCESS;
}

bool is_sweeping() { return t_sweeping; }

void advance_flights() {
  if (!any_flights() || t_sweeping || t_cache.depth > 0) return;
  const bool threaded = process().threaded;
  if (threaded && !flights().sweeping.try_lock()) return;
  t_sweeping = true;
  sweep();
  t_sweeping = false;
  if (threaded) flights().sweeping.unlock();
}

Flight* claim_flight(MPI_Request handle) {
  Flights& all = flights();
  const Lock lock(all.mutex);
  Flight* const flight = all.by_handle.find(handle);
  if (flight == nullptr || flight->held != 0 || flight->by_host || is_shown(*flight))
    return nullptr;
  if (!all.flying.empty() && all.flying.back() == flight) [[likely]] {
    all.flying.pop_back();
    return flight;
  }
  const auto place = std::find(all.flying.begin(), all.flying.end(), flight);
  if (place == all.flying.end()) return nullptr;  // another thread is just completing it
  all.flying.erase(place);
  return flight;
}

bool ends_soon(Flight* flight) {
  constexpr int kPolls = 200;
  for (int polls = 0; polls < kPolls; ++polls) {
    if (ended(*flight)) return true;
  }
  return false;
}

void unclaim_flight(Flight* flight) {
  const Lock lock(flights().mutex);
  flights().flying.push_back(flight);
}

Flight* find_failed(MPI_Request handle) {
  const Lock lock(flights().mutex);
  take_back(flights());
  return flights().failed.find(handle);
}

Ending end_flight(Flight* flight, bool alone, MPI_Request* handle) {
  const MPI_Comm comm =
      flight->communicator->handle;  // it may be gone when the flight has ended well
  conclude(*flight);
  flight->told = alone;
  const bool well = flight->code == MPI_SUCCESS;
  const Ending ending{.ours = true, .comm = comm, .code = flight->code, .taken_back = well};
  if (well || (alone && flight->persistent)) {
    if (!flight->persistent) *handle = g_host.request_null;
    keep_handle(flight);
  } else {
    complete_handle(flight);
  }
  return ending;
}

void tell_nothing(MPI_Status* status) {
  host().Status_set_elements(status, g_host.byte, 0);
  host().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
}

void finish_flights() {
  while (still_flying()) {
    advance_flights();
    sched_yield();
  }
  free_all_persistent();
  std::vector<Flight*> spare;
  {
    const Lock lock(flights().mutex);
    spare = std::exchange(flights().spare, {});
  }
  const InsideHost guard;
  for (Flight* const flight : spare) {
    if (!flight->has_handle) continue;
    MPI_Request handle = flight->handle;
    forget_handle(handle);
    host().Grequest_complete(handle);
    host().Request_free(&handle);
  }
}

}  // namespace carillon::shim
