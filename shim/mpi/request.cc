// SPDX-License-Identifier: Apache-2.0
//
// The functions that complete requests. While no collective of carillon's is in flight they only
// call the host's. Otherwise a blocking one becomes its testing form, asked again and again, with
// progress of everything in flight in between: the host knows of each request in the array when
// it has ended, whoever it is of. Persistent collectives are shown to it first (persistent.h).
#include <algorithm>
#include <cstddef>
#include <vector>

#include "errors.h"
#include "flight.h"
#include "left_persistent.h"
#include "persistent.h"
#include "poll.h"
#include "process.h"

namespace carillon::shim {
namespace {

// An active persistent collective of ours that the host knows nothing of.
Flight* find_unshown(const MPI_Request* request) {
  Flight* const flight = request == nullptr ? nullptr : find_active(*request);
  return flight == nullptr || is_shown(*flight) ? nullptr : flight;
}

// A persistent collective that has ended, and of which the program is told now.
Ending take_in(Flight* flight) {
  const Ending ending{.ours = true,
                      .comm = flight->communicator->handle,
                      .code = flight->code,
                      .taken_back = flight->code == MPI_SUCCESS};
  end_persistent(flight);
  return ending;
}

// A request alone, the shortest way: ends there, if it is one of ours. Its error is still raised.
Ending end_alone(MPI_Request* request) {
  Flight* const flight = request == nullptr ? nullptr : claim_flight(*request);
  if (flight != nullptr) return end_flight(flight, true, request);
  Flight* const landed = find_unshown(request);
  return landed == nullptr || !has_landed(*landed) ? Ending{} : take_in(landed);
}

int raise(const Ending& ending, int status) {
  if (status != MPI_SUCCESS || ending.code == MPI_SUCCESS) return status;
  return raise_error(ending.comm, ending.code);
}

// MPI_Test of a persistent collective that the host knows nothing of.
int test_unshown(Flight* flight, int* done, MPI_Status* status) {
  *done = has_landed(*flight) ? 1 : 0;
  if (*done == 0) {
    progress_host();
    return MPI_SUCCESS;
  }
  if (status != MPI_STATUS_IGNORE) tell_nothing(status);
  return raise(take_in(flight), MPI_SUCCESS);
}

// The host has said nothing yet. False: there is no place for it to say so, which it refuses.
bool clear(int* answer, int nothing = 0) {
  if (answer == nullptr) return false;
  *answer = nothing;
  return true;
}

// Is there a place of a request? What else is said of it is the host's; to poll it for an end that
// never comes would be no answer, and some hosts tell of the error by the handler alone.
bool any_request(int count, const MPI_Request* requests) {
  return count > 0 && requests != nullptr;
}

// Whether MPI_Waitall cannot wait in carillon for a collective that does not end at once: MPICH
// moves some requests on only when it is asked about them, as generalized ones with a function for
// that (MPIX_Grequest_start), which its non-blocking collectives of files have; and other ranks may
// wait for these before they come to the collective. Open MPI moves all on in every call.
bool must_ask_the_host([[maybe_unused]] Flight* flight, [[maybe_unused]] int count,
                       [[maybe_unused]] const MPI_Request* requests) {
#ifdef OPEN_MPI
  return false;
#else
  return !ends_soon(flight) && std::any_of(requests, requests + count, [](MPI_Request request) {
    return request != g_host.request_null && find_flight(request) == nullptr;
  });
#endif
}

// Where the host tells the states of all requests, though the program wants none. MPICH 4.0 looks
// at 64 at a time (MPIR_CVAR_REQUEST_BATCH_SIZE); MPI_Testall without states then takes all of them
// for messages if the last of these are, and ends the process: MPI_Waitall, as which it is called
// here, does not.
class States {
 public:
  States([[maybe_unused]] int count, MPI_Status* wanted) : all_(wanted) {
#ifndef OPEN_MPI
    constexpr int kAtOnce = 64;
    if (wanted != MPI_STATUSES_IGNORE || count <= kAtOnce) return;
    own_.resize(static_cast<std::size_t>(count));
    all_ = own_.data();
#endif
  }
  [[nodiscard]] MPI_Status* all() const { return all_; }

 private:
  std::vector<MPI_Status> own_;
  MPI_Status* all_;
};

// The requests that the host is asked about, and carillon's among them. Persistent collectives are
// shown to it before, and ended here when it says that they have. Errors of collectives are told
// here, too: what a generalized request tells the host, some hosts tell as an error of another
// class, or call the handler and return none.
class Among {
 public:
  Among(int count, const MPI_Request* requests) : count_(count), requests_(requests) {
    persistent_ = any_active_persistent() && requests != nullptr;
    for (int i = 0; i < count_ && persistent_; ++i) {
      if (Flight* const flight = find_active(requests_[i])) show_persistent(flight);
    }
  }

  /// Asks the host about all of them, or some.
  template <typename Ask>
  int ask(Ask function) {
    if (!any_failed_flights() || requests_ == nullptr) [[likely]]
      return function();
    for (int i = 0; i < count_; ++i) {
      Flight* const flight = find_failed(requests_[i]);
      if (flight == nullptr) continue;
      flight->told = true;
      failed_.push_back({flight, i, flight->communicator->handle, flight->code});
    }
    const int status = function();
    std::erase_if(failed_, [&](const Failed& one) {
      const bool stays = requests_[one.index] != g_host.request_null;
      if (stays) one.flight->told = false;
      return stays;
    });
    return status;
  }

  /// The host's status is of the request at `index`; MPI_UNDEFINED: of none.
  [[nodiscard]] int of_one(int status, int index, MPI_Status* state) const {
    const Ending ending = index < 0 || index >= count_ ? Ending{} : ending_of(index);
    if (!ending.ours) return status;
    if (state != MPI_STATUS_IGNORE) tell_nothing(state);
    return raise(ending, status);
  }

  /// The host's status is of the request at `index`, which has ended and stays.
  void look_at(int index, MPI_Status* state) const {
    const bool known = state != MPI_STATUS_IGNORE && index >= 0 && index < count_;
    if (known && active(index) != nullptr) tell_nothing(state);
  }

  /// Of those at the indices, with a status each.
  [[nodiscard]] int of_some(int status, int done, const int* indices, MPI_Status* states) const {
    Found found{.status = status, .all = done, .states = states};
    for (int k = 0; k < done && done != MPI_UNDEFINED; ++k) end(indices[k], k, &found);
    return raised(found);
  }

  /// Of all. After an error, some may have ended and others not: who waits for these asks again.
  [[nodiscard]] int of_all(int status, MPI_Status* states) const {
    Found found{.status = status, .all = count_, .states = states};
    for (int i = 0; i < count_; ++i) {
      Flight* const flight = active(i);
      if (status != MPI_SUCCESS && flight != nullptr) {
        if (!has_landed(*flight)) continue;
        MPI_Request handle = flight->handle;
        host().Wait(&handle, MPI_STATUS_IGNORE);
      }
      end(i, i, &found);
    }
    return raised(found);
  }

 private:
  struct Failed {
    Flight* flight = nullptr;
    int index = 0;
    MPI_Comm comm{};
    int code = MPI_SUCCESS;
  };
  struct Found {
    int status = MPI_SUCCESS;  // the host's
    int all = 0;               // statuses that it has written
    MPI_Status* states = nullptr;
    Ending failed{};
  };

  [[nodiscard]] Flight* active(int index) const {
    return persistent_ ? find_active(requests_[index]) : nullptr;
  }

  [[nodiscard]] Ending ending_of(int index) const {
    for (const Failed& one : failed_) {
      if (one.index == index) return {.ours = true, .comm = one.comm, .code = one.code};
    }
    Flight* const flight = active(index);
    return flight == nullptr ? Ending{} : take_in(flight);
  }

  void end(int index, int place, Found* found) const {
    const Ending ending = ending_of(index);
    if (!ending.ours) return;
    const bool first = found->status == MPI_SUCCESS && !found->failed.ours;
    if (ending.code != MPI_SUCCESS) found->failed = ending;
    if (found->states == MPI_STATUSES_IGNORE) return;
    tell_nothing(&found->states[place]);
    for (int k = 0; ending.code != MPI_SUCCESS && first && k < found->all; ++k) {
      found->states[k].MPI_ERROR = MPI_SUCCESS;
    }
    if (found->failed.ours || found->status != MPI_SUCCESS) {
      found->states[place].MPI_ERROR = ending.code;
    }
  }

  static int raised(const Found& found) {
    if (!found.failed.ours || found.status != MPI_SUCCESS) return found.status;
    return raise_error(found.failed.comm, MPI_ERR_IN_STATUS);
  }

  int count_;
  const MPI_Request* requests_;
  bool persistent_ = false;     // there may be some that are active
  std::vector<Failed> failed_;  // that the host has completed
};

// MPI_Waitall, while something of carillon's is in flight.
int wait_for_all(int count, MPI_Request* requests, MPI_Status* statuses) {
  for (int i = 0; i < count; ++i) {
    Flight* const flight = claim_flight(requests[i]);
    if (flight == nullptr) continue;
    if (must_ask_the_host(flight, count, requests)) {
      unclaim_flight(flight);
      break;
    }
    end_flight(flight, false, &requests[i]);
  }
  int done = 0;
  Among among(count, requests);
  const States states(count, statuses);
  const int code = poll_until(&done, [&] {
    return among.ask([&] { return host().Testall(count, requests, &done, states.all()); });
  });
  return among.of_all(code, states.all());
}

// The same, where persistent collectives of the host may be among them, which its MPI_Testall does
// not bear: those first, each by itself.
int wait_for_all_apart(int count, MPI_Request* requests, MPI_Status* statuses) {
  std::vector<MPI_Request> others(requests, requests + count);
  std::vector<MPI_Status> states(others.size());
  int failed = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    if (!is_left_persistent(requests[i])) continue;
    others[static_cast<std::size_t>(i)] = g_host.request_null;
    int done = 0;
    MPI_Status* const state = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    const int code = poll_until(&done, [&] { return host().Test(&requests[i], &done, state); });
    if (failed == MPI_SUCCESS) failed = code;
  }
  const int code = wait_for_all(count, others.data(), states.data());
  for (int i = 0; i < count; ++i) {
    if (is_left_persistent(requests[i])) continue;
    requests[i] = others[static_cast<std::size_t>(i)];
    if (statuses != MPI_STATUSES_IGNORE) statuses[i] = states[static_cast<std::size_t>(i)];
  }
  return failed == MPI_SUCCESS ? code : failed;
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::advance_flights;
using carillon::shim::Among;
using carillon::shim::any_flights;
using carillon::shim::any_left_persistent;
using carillon::shim::any_request;
using carillon::shim::call_newer;
using carillon::shim::clear;
using carillon::shim::Ending;
using carillon::shim::Flight;
using carillon::shim::host;
using carillon::shim::poll_until;
using carillon::shim::States;
using carillon::shim::tell_nothing;

extern "C" {

CARILLON_EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!any_flights() || !any_request(1, request)) return host().Wait(request, status);
  const Ending ending = carillon::shim::end_alone(request);
  if (ending.taken_back) {
    if (status != MPI_STATUS_IGNORE) tell_nothing(status);
    return MPI_SUCCESS;
  }
  if (ending.ours) {
    return carillon::shim::raise(ending, host().Wait(request, status));
  }
  int done = 0;
  Among among(1, request);
  const int code = poll_until(
      &done, [&] { return among.ask([&] { return host().Test(request, &done, status); }); });
  return among.of_one(code, 0, status);
}

CARILLON_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (!any_flights() || !any_request(count, requests)) {
    return host().Waitall(count, requests, statuses);
  }
  return any_left_persistent() ? carillon::shim::wait_for_all_apart(count, requests, statuses)
                               : carillon::shim::wait_for_all(count, requests, statuses);
}

CARILLON_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (!any_flights() || !any_request(count, requests) || !clear(index, MPI_UNDEFINED)) {
    return host().Waitany(count, requests, index, status);
  }
  int done = 0;
  Among among(count, requests);
  const int code = poll_until(&done, [&] {
    return among.ask([&] { return host().Testany(count, requests, index, &done, status); });
  });
  // Where none is active, MPICH 4.0's MPI_Testany leaves the status as it was; its MPI_Waitany does
  // not.
  const bool none = code == MPI_SUCCESS && *index == MPI_UNDEFINED;
  if (none && status != MPI_STATUS_IGNORE) tell_nothing(status);
  return among.of_one(code, *index, status);
}

CARILLON_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                                 MPI_Status statuses[]) {
  // Open MPI 4.1's MPI_Testsome tells no error handler that there is no place for indices.
  if (!any_flights() || !any_request(count, requests) || indices == nullptr || !clear(done)) {
    return host().Waitsome(count, requests, done, indices, statuses);
  }
  Among among(count, requests);
  const int code = poll_until(done, [&] {
    return among.ask([&] { return host().Testsome(count, requests, done, indices, statuses); });
  });
  return among.of_some(code, *done, indices, statuses);
}

CARILLON_EXPORT int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  if (!clear(done)) return host().Test(request, done, status);
  advance_flights();
  if (Flight* const flight = carillon::shim::find_unshown(request)) {
    return carillon::shim::test_unshown(flight, done, status);
  }
  Among among(1, request);
  const int code = among.ask([&] { return host().Test(request, done, status); });
  return among.of_one(code, *done != 0 ? 0 : MPI_UNDEFINED, status);
}

CARILLON_EXPORT int MPI_Testall(int count, MPI_Request requests[], int* done,
                                MPI_Status statuses[]) {
  if (!clear(done)) return host().Testall(count, requests, done, statuses);
  advance_flights();
  Among among(count, requests);
  const States states(count, statuses);
  const int code = among.ask([&] { return host().Testall(count, requests, done, states.all()); });
  return code == MPI_SUCCESS && *done == 0 ? code : among.of_all(code, states.all());
}

CARILLON_EXPORT int MPI_Testany(int count, MPI_Request requests[], int* index, int* done,
                                MPI_Status* status) {
  if (!clear(done) || !clear(index, MPI_UNDEFINED)) {
    return host().Testany(count, requests, index, done, status);
  }
  advance_flights();
  Among among(count, requests);
  const int code = among.ask([&] { return host().Testany(count, requests, index, done, status); });
  return among.of_one(code, *done != 0 ? *index : MPI_UNDEFINED, status);
}

CARILLON_EXPORT int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                                 MPI_Status statuses[]) {
  if (!clear(done)) return host().Testsome(count, requests, done, indices, statuses);
  advance_flights();
  Among among(count, requests);
  const int code =
      among.ask([&] { return host().Testsome(count, requests, done, indices, statuses); });
  return among.of_some(code, *done, indices, statuses);
}

// These end none: an error stays for the call that does.

CARILLON_EXPORT int MPI_Request_get_status(MPI_Request request, int* done, MPI_Status* status) {
  if (!clear(done)) return host().Request_get_status(request, done, status);
  advance_flights();
  Among among(1, &request);
  const int code = among.ask([&] { return host().Request_get_status(request, done, status); });
  if (code == MPI_SUCCESS && *done != 0) among.look_at(0, status);
  return code;
}

CARILLON_EXPORT int MPI_Request_get_status_any(int count, const MPI_Request requests[], int* index,
                                               int* done, MPI_Status* status) {
  if (!clear(done) || !clear(index, MPI_UNDEFINED)) {
    return call_newer(host().Request_get_status_any, count, requests, index, done, status);
  }
  advance_flights();
  Among among(count, requests);
  const int code = among.ask([&] {
    return call_newer(host().Request_get_status_any, count, requests, index, done, status);
  });
  if (code == MPI_SUCCESS && *done != 0) among.look_at(*index, status);
  return code;
}

CARILLON_EXPORT int MPI_Request_get_status_all(int count, const MPI_Request requests[], int* done,
                                               MPI_Status statuses[]) {
  if (!clear(done)) {
    return call_newer(host().Request_get_status_all, count, requests, done, statuses);
  }
  advance_flights();
  Among among(count, requests);
  const int code = among.ask(
      [&] { return call_newer(host().Request_get_status_all, count, requests, done, statuses); });
  const bool told = code == MPI_SUCCESS && *done != 0 && statuses != MPI_STATUSES_IGNORE;
  for (int i = 0; told && i < count; ++i) among.look_at(i, &statuses[i]);
  return code;
}

CARILLON_EXPORT int MPI_Request_get_status_some(int count, const MPI_Request requests[], int* done,
                                                int indices[], MPI_Status statuses[]) {
  if (!clear(done)) {
    return call_newer(host().Request_get_status_some, count, requests, done, indices, statuses);
  }
  advance_flights();
  Among among(count, requests);
  const int code = among.ask([&] {
    return call_newer(host().Request_get_status_some, count, requests, done, indices, statuses);
  });
  const bool told =
      code == MPI_SUCCESS && *done != MPI_UNDEFINED && statuses != MPI_STATUSES_IGNORE;
  for (int k = 0; told && k < *done; ++k) among.look_at(indices[k], &statuses[k]);
  return code;
}

}  // extern "C"
