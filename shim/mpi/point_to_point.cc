// SPDX-License-Identifier: Apache-2.0
//
// The blocking point-to-point functions. Others may need this process for a collective that it has
// started, while it waits here for a message: a broadcast that it is to pass on, say. So while
// collectives are in flight, what would block is started, and asked about with progress in between.
#include "poll.h"

namespace carillon::shim {
namespace {

// begin(request) starts what is waited for.
template <typename Begin>
int begin_and_poll(MPI_Status* state, Begin begin) {
  MPI_Request request = g_host.request_null;
  const int status = begin(&request);
  if (status != MPI_SUCCESS) return status;
  int done = 0;
  return poll_until(&done, [&] { return host().Test(&request, &done, state); });
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::any_flights;
using carillon::shim::begin_and_poll;
using carillon::shim::host;
using carillon::shim::poll_until;

extern "C" {

#define CARILLON_SEND(symbol, started, CRL_COUNT)                                          \
  CARILLON_EXPORT int MPI_##symbol(const void* buffer, CRL_COUNT count, MPI_Datatype type, \
                                   int target, int tag, MPI_Comm comm) {                   \
    if (!any_flights()) return host().symbol(buffer, count, type, target, tag, comm);      \
    return begin_and_poll(MPI_STATUS_IGNORE, [&](MPI_Request* request) {                   \
      return host().started(buffer, count, type, target, tag, comm, request);              \
    });                                                                                    \
  }
#define CARILLON_RECEIVE(symbol, started, sendrecv, send, CRL_COUNT)                             \
  CARILLON_EXPORT int MPI_##symbol(void* buffer, CRL_COUNT count, MPI_Datatype type, int source, \
                                   int tag, MPI_Comm comm, MPI_Status* state) {                  \
    if (!any_flights()) return host().symbol(buffer, count, type, source, tag, comm, state);     \
    return begin_and_poll(state, [&](MPI_Request* request) {                                     \
      return host().started(buffer, count, type, source, tag, comm, request);                    \
    });                                                                                          \
  }                                                                                              \
  CARILLON_EXPORT int MPI_##sendrecv(const void* in, CRL_COUNT in_count, MPI_Datatype in_type,   \
                                     int target, int in_tag, void* out, CRL_COUNT out_count,     \
                                     MPI_Datatype out_type, int source, int out_tag,             \
                                     MPI_Comm comm, MPI_Status* state) {                         \
    if (!any_flights()) {                                                                        \
      return host().sendrecv(in, in_count, in_type, target, in_tag, out, out_count, out_type,    \
                             source, out_tag, comm, state);                                      \
    }                                                                                            \
    MPI_Request receiving = host().request_null;                                                 \
    int done = 0;                                                                                \
    int status = host().started(out, out_count, out_type, source, out_tag, comm, &receiving);    \
    if (status != MPI_SUCCESS) return status;                                                    \
    status = begin_and_poll(MPI_STATUS_IGNORE, [&](MPI_Request* request) {                       \
      return host().send(in, in_count, in_type, target, in_tag, comm, request);                  \
    });                                                                                          \
    if (status != MPI_SUCCESS) {                                                                 \
      host().Cancel(&receiving);                                                                 \
      host().Wait(&receiving, MPI_STATUS_IGNORE);                                                \
      return status;                                                                             \
    }                                                                                            \
    return poll_until(&done, [&] { return host().Test(&receiving, &done, state); });             \
  }

CARILLON_SEND(Send, Isend, int)
CARILLON_SEND(Ssend, Issend, int)
CARILLON_SEND(Rsend, Irsend, int)
CARILLON_RECEIVE(Recv, Irecv, Sendrecv, Isend, int)
#ifdef CARILLON_LARGE_COUNTS
CARILLON_SEND(Send_c, Isend_c, MPI_Count)
CARILLON_SEND(Ssend_c, Issend_c, MPI_Count)
CARILLON_SEND(Rsend_c, Irsend_c, MPI_Count)
CARILLON_RECEIVE(Recv_c, Irecv_c, Sendrecv_c, Isend_c, MPI_Count)
#endif

CARILLON_EXPORT int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* state) {
  if (!any_flights()) return host().Probe(source, tag, comm, state);
  int found = 0;
  return poll_until(&found, [&] { return host().Iprobe(source, tag, comm, &found, state); });
}

CARILLON_EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                               MPI_Status* state) {
  if (!any_flights()) return host().Mprobe(source, tag, comm, message, state);
  int found = 0;
  return poll_until(&found,
                    [&] { return host().Improbe(source, tag, comm, &found, message, state); });
}

CARILLON_EXPORT int MPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                              MPI_Status* state) {
  if (!any_flights()) return host().Mrecv(buffer, count, type, message, state);
  return begin_and_poll(state, [&](MPI_Request* request) {
    return host().Imrecv(buffer, count, type, message, request);
  });
}

}  // extern "C"
