// SPDX-License-Identifier: Apache-2.0
#include "persistent.h"

#include <mutex>
#include <unordered_set>
#include <vector>

#include "errors.h"
#include "host_progress.h"
#include "left_persistent.h"
#include "observe.h"
#include "process.h"
#include "stats.h"

namespace carillon::shim {

constinit std::atomic<int> g_active_persistent = 0;

namespace {

std::atomic<int> g_known = 0;  // persistent collectives that there are

struct Persistents {
  std::mutex mutex;
  std::unordered_set<Flight*> all;
  std::vector<int> free_tags;
  int next_tag = kFirstPersistentTag;
};

// Never destroyed: the program's threads may end after the process's static objects.
Persistents& persistents() {
  static Persistents& all = *new Persistents();
  return all;
}

int last_tag() {
  int* value = nullptr;
  int found = 0;
  const int status = host().Comm_get_attr(comm_of_errors(), MPI_TAG_UB, &value, &found);
  constexpr int kPromised = 32767;
  return status == MPI_SUCCESS && found != 0 ? *value : kPromised;
}

// 0: all are in use.
int take_tag() {
  Persistents& all = persistents();
  const InsideHost guard;
  static const int last = last_tag();
  const std::lock_guard lock(all.mutex);
  if (!all.free_tags.empty()) {
    const int tag = all.free_tags.back();
    all.free_tags.pop_back();
    return tag;
  }
  return all.next_tag <= last ? all.next_tag++ : 0;
}

void give_tag_back(int tag) {
  const std::lock_guard lock(persistents().mutex);
  persistents().free_tags.push_back(tag);
}

void tell_host(const Flight& flight) {
  const InsideHost guard;
  host().Send(nullptr, 0, g_host.byte, 0, flight.tag, process().self);
}

void set_inactive(Flight* flight) {
  flight->active.store(false, std::memory_order_relaxed);
  add_to(g_active_persistent, -1);
  add_to(g_flights, -1);
}

// Nobody will begin it again, and it is not flying.
void dispose(Flight* flight) {
  Persistents& all = persistents();
  {
    const std::lock_guard lock(all.mutex);
    all.all.erase(flight);
  }
  {
    const InsideHost guard;
    // A receive that has begun ends before its tag is another's.
    if (is_shown(*flight)) host().Wait(&flight->handle, MPI_STATUS_IGNORE);
    host().Request_free(&flight->handle);
    if (flight->host_request != g_host.request_null) host().Request_free(&flight->host_request);
  }
  give_tag_back(flight->tag);
  g_known.fetch_sub(1, std::memory_order_relaxed);
  drop_persistent(flight);
}

// The program frees a handle. If the collective is on its way, it ends all the same.
void free_persistent(Flight* flight) {
  forget_handle(flight->handle);
  // Only the program's own calls have changed it so far; from the next line on it may be gone.
  const bool active = flight->active.load(std::memory_order_relaxed);
  // Partner: land_persistent. Whoever comes second disposes of it.
  const unsigned before = flight->happened.fetch_or(Flight::kFreed, std::memory_order_acq_rel);
  if (active && (before & Flight::kLanded) == 0) return;
  if (active) set_inactive(flight);
  dispose(flight);
}

// The host alone can do it, as turned out on all ranks alike.
int begin_by_host(Flight* flight, Reason reason) {
  if (flight->communicator->handle != flight->asked) {  // which the host would need for it
    return raise_error(flight->communicator->handle, MPI_ERR_COMM);
  }
  count_left(flight->counted, reason);
  int status = MPI_SUCCESS;
  if (flight->host_request == g_host.request_null) {
    status = flight->host_call(flight->asked, &flight->host_request);
  }
  if (status == MPI_SUCCESS) status = host().Start(&flight->host_request);
  flight->by_host = status == MPI_SUCCESS;
  flight->left = reason;
  return status;
}

// observe(): before others may see it end.
template <typename Observe>
int begin(Flight* flight, Observe observe) {
  if (flight->active.load(std::memory_order_relaxed)) {
    return raise_error(flight->communicator->handle, MPI_ERR_REQUEST);
  }
  flight->code = MPI_SUCCESS;
  flight->ended = CRL_OK;
  flight->observers = 0;
  const Outcome outcome = flight->begin();
  const int code =
      outcome.left == Reason::kNone ? outcome.code : begin_by_host(flight, outcome.left);
  if (code != MPI_SUCCESS) return code;
  flight->active.store(true, std::memory_order_relaxed);
  add_to(g_active_persistent, 1);
  observe();
  take_off(flight);
  return MPI_SUCCESS;
}

int begin_observed(Flight* flight) {
  const ObservedCall observed(nullptr);
  const int code = begin(flight, [flight] { observe_launch(flight); });
  if (code == MPI_SUCCESS) observed.write_start();
  return code;
}

bool any_persistent() { return g_known.load(std::memory_order_relaxed) > 0; }

// Null: a request of the host's.
Flight* find_persistent(MPI_Request handle) {
  if (!any_persistent()) return nullptr;
  Flight* const flight = find_flight(handle);
  return flight != nullptr && flight->persistent ? flight : nullptr;
}

// One of carillon's that has not ended, or is persistent. Null: a request of the host's.
Flight* find_any(const MPI_Request* request) {
  const bool none = request == nullptr || !(any_flights() || any_persistent());
  return none ? nullptr : find_flight(*request);
}

// What MPI forbids on a non-blocking collective. The host, for which that is a generalized request,
// would do it: MPICH gives that back while the collective is on its way.
int refuse() { return raise_error(comm_of_errors(), MPI_ERR_REQUEST); }

int start(MPI_Request* request) {
  Flight* const flight = request == nullptr ? nullptr : find_persistent(*request);
  if (flight == nullptr) return host().Start(request);
  return observers() != 0 ? begin_observed(flight) : begin(flight, [] {});
}

}  // namespace

Flight* new_persistent(Communicator& communicator, std::size_t counted, MPI_Comm asked) {
  be_called_by_host();
  auto* const flight = new Flight();
  Communicator& sibling = make_sibling(communicator);
  flight->persistent = true;
  flight->communicator = &sibling;
  flight->counted = counted;
  flight->asked = asked;
  flight->host_request = g_host.request_null;
  add_to(sibling.in_flight, 1);
  return flight;
}

void drop_persistent(Flight* flight) {
  Communicator* const communicator = flight->communicator;
  delete flight;
  drop_sibling(*communicator);
  // Partner: destroy_freed_teams, which then finds nobody in the team.
  add_to(communicator->in_flight, -1);
}

int keep_persistent(Flight* flight, MPI_Request* handle) {
  flight->tag = take_tag();
  int status = MPI_ERR_NO_MEM;
  if (flight->tag != 0) {
    const InsideHost guard;
    status =
        host().Recv_init(nullptr, 0, g_host.byte, 0, flight->tag, process().self, &flight->handle);
  }
  if (status != MPI_SUCCESS) {
    const MPI_Comm comm = flight->communicator->handle;
    if (flight->tag != 0) give_tag_back(flight->tag);
    drop_persistent(flight);
    return raise_error(comm, status);
  }
  {
    const std::lock_guard lock(persistents().mutex);
    persistents().all.insert(flight);
  }
  know_handle(flight);
  g_known.fetch_add(1, std::memory_order_relaxed);
  *handle = flight->handle;
  return MPI_SUCCESS;
}

Flight* find_active(MPI_Request handle) {
  if (!any_active_persistent()) return nullptr;
  Flight* const flight = find_persistent(handle);
  return flight != nullptr && flight->active.load(std::memory_order_relaxed) ? flight : nullptr;
}

// The message never comes before its receive: to send it could then block, in the thread that has
// everybody's flights to end, until a thread that waits for one of these calls the host.
void show_persistent(Flight* flight) {
  if (is_shown(*flight)) return;  // by the program's own calls, one after another
  {
    const InsideHost guard;
    host().Start(&flight->handle);
  }
  // Partner: land_persistent. Whoever comes second sends the message.
  const unsigned before = flight->happened.fetch_or(Flight::kShown, std::memory_order_acq_rel);
  if ((before & Flight::kLanded) != 0) tell_host(*flight);
}

void land_persistent(Flight* flight) {
  // Partners: show_persistent, free_persistent, has_landed.
  const unsigned before = flight->happened.fetch_or(Flight::kLanded, std::memory_order_acq_rel);
  if ((before & Flight::kShown) != 0) tell_host(*flight);
  if ((before & Flight::kFreed) == 0) return;
  set_inactive(flight);
  dispose(flight);
}

void end_persistent(Flight* flight) {
  // Nobody else looks at it now: it does not fly, and the program is in a call on its handle.
  flight->happened.store(0, std::memory_order_relaxed);
  set_inactive(flight);
}

void free_all_persistent() {
  for (;;) {
    Flight* flight = nullptr;
    {
      const std::lock_guard lock(persistents().mutex);
      if (persistents().all.empty()) return;
      flight = *persistents().all.begin();
    }
    free_persistent(flight);
  }
}

}  // namespace carillon::shim

using carillon::shim::Flight;
using carillon::shim::host;
using carillon::shim::start;

extern "C" {

CARILLON_EXPORT int MPI_Start(MPI_Request* request) { return start(request); }

// Those of the host's that stand next to each other are started together.
CARILLON_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  if (count <= 0 || requests == nullptr || !carillon::shim::any_persistent()) {
    return host().Startall(count, requests);
  }
  int of_host = 0;
  for (int i = 0; i <= count; ++i) {
    const bool ours = i < count && carillon::shim::find_persistent(requests[i]) != nullptr;
    if (i < count && !ours) {
      ++of_host;
      continue;
    }
    int status = MPI_SUCCESS;
    if (of_host > 0) status = host().Startall(of_host, requests + i - of_host);
    of_host = 0;
    if (status == MPI_SUCCESS && ours) status = start(&requests[i]);
    if (status != MPI_SUCCESS) return status;
  }
  return MPI_SUCCESS;
}

CARILLON_EXPORT int MPI_Request_free(MPI_Request* request) {
  Flight* const flight = carillon::shim::find_any(request);
  if (flight == nullptr) {
    if (request != nullptr) carillon::shim::forget_left_persistent(*request);
    return host().Request_free(request);
  }
  if (!flight->persistent) return carillon::shim::refuse();
  carillon::shim::free_persistent(flight);
  *request = carillon::shim::g_host.request_null;
  return MPI_SUCCESS;
}

// A collective cannot be cancelled: its handle's receive must not be.
CARILLON_EXPORT int MPI_Cancel(MPI_Request* request) {
  Flight* const flight = carillon::shim::find_any(request);
  if (flight == nullptr) return host().Cancel(request);
  if (!flight->persistent) return carillon::shim::refuse();
  return carillon::shim::raise_error(flight->communicator->handle, MPI_ERR_REQUEST);
}

}  // extern "C"
