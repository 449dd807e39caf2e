// SPDX-License-Identifier: Apache-2.0
//
// The functions that complete requests. While no collective of carillon's is in flight they only
// call the host's. Otherwise a blocking one becomes its testing form, asked again and again, with
// progress of everything in flight in between: the host knows of each request in the array when
// it has ended, whoever it is of.
#include "errors.h"
#include "flight.h"
#include "poll.h"

#define CARILLON_EXPORT __attribute__((visibility("default")))

namespace carillon::shim {
namespace {

// A request alone, the shortest way: ends there, if it is one of ours. Its error is still raised.
Ending end_alone(MPI_Request* request) {
  Flight* const flight = request == nullptr ? nullptr : claim_flight(*request);
  return flight == nullptr ? Ending{} : end_flight(flight, true, request);
}

int raise(const Ending& ending, int status) {
  if (status != MPI_SUCCESS || ending.code == MPI_SUCCESS) return status;
  return raise_error(ending.comm, ending.code);
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::advance_flights;
using carillon::shim::any_flights;
using carillon::shim::claim_flight;
using carillon::shim::end_flight;
using carillon::shim::Ending;
using carillon::shim::Flight;
using carillon::shim::host;
using carillon::shim::poll_until;

extern "C" {

CARILLON_EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!any_flights()) return host().Wait(request, status);
  const Ending ending = carillon::shim::end_alone(request);
  if (ending.taken_back) {
    if (status != MPI_STATUS_IGNORE) carillon::shim::tell_nothing(status);
    return MPI_SUCCESS;
  }
  if (ending.ours) {
    return carillon::shim::raise(ending, host().Wait(request, status));
  }
  int done = 0;
  return poll_until(&done, [&] { return host().Test(request, &done, status); });
}

CARILLON_EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (!any_flights()) return host().Waitall(count, requests, statuses);
  for (int i = 0; i < count && requests != nullptr; ++i) {
    Flight* const flight = claim_flight(requests[i]);
    if (flight != nullptr) end_flight(flight, false, &requests[i]);
  }
  int done = 0;
  return poll_until(&done, [&] { return host().Testall(count, requests, &done, statuses); });
}

CARILLON_EXPORT int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (!any_flights()) return host().Waitany(count, requests, index, status);
  int done = 0;
  return poll_until(&done, [&] { return host().Testany(count, requests, index, &done, status); });
}

CARILLON_EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                                 MPI_Status statuses[]) {
  if (!any_flights()) return host().Waitsome(count, requests, done, indices, statuses);
  return poll_until(done,
                    [&] { return host().Testsome(count, requests, done, indices, statuses); });
}

CARILLON_EXPORT int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  advance_flights();
  return host().Test(request, done, status);
}

CARILLON_EXPORT int MPI_Testall(int count, MPI_Request requests[], int* done,
                                MPI_Status statuses[]) {
  advance_flights();
  return host().Testall(count, requests, done, statuses);
}

CARILLON_EXPORT int MPI_Testany(int count, MPI_Request requests[], int* index, int* done,
                                MPI_Status* status) {
  advance_flights();
  return host().Testany(count, requests, index, done, status);
}

CARILLON_EXPORT int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                                 MPI_Status statuses[]) {
  advance_flights();
  return host().Testsome(count, requests, done, indices, statuses);
}

CARILLON_EXPORT int MPI_Request_get_status(MPI_Request request, int* done, MPI_Status* status) {
  advance_flights();
  return host().Request_get_status(request, done, status);
}

}  // extern "C"
