// SPDX-License-Identifier: Apache-2.0
//
// The functions that make a communicator, a window or a file of a communicator. Open MPI 4 does not
// bear that two copies of one communicator are made at once, and carillon copies a communicator
// whose first collective is a non-blocking one (bootstrap.h). So who would wait for the other ranks
// anyway waits for that copy first; what must not wait begins when it is there.
#include "makers.h"

#include "check.h"
#include "flight.h"
#include "host.h"

namespace carillon::shim {

void await_copies(MPI_Comm comm) {
  if (comm == g_host.comm_null) return;
  await_copy(comm);
  await_team(comm);
}

namespace {

template <typename Make>
int make_later(MPI_Comm comm, MPI_Request* request, Make make) {
  int status = MPI_SUCCESS;
  if (request != nullptr && launch_later(comm, make, request, &status)) return status;
  return make(comm, request);
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::host;

extern "C" {

#define CARILLON_MAKER(symbol, parameters, arguments) \
  CARILLON_EXPORT int MPI_##symbol parameters {       \
    host();                                           \
    carillon::shim::await_copies(comm);               \
    return host().symbol arguments;                   \
  }
#include "makers.def"
#undef CARILLON_MAKER

// The lambdas' `comm` and `request` stand for the functions'.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
CARILLON_EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  return carillon::shim::make_later(comm, request, [made](MPI_Comm comm, MPI_Request* request) {
    return host().Comm_idup(comm, made, request);
  });
}

#ifdef CARILLON_LARGE_COUNTS  // as old
CARILLON_EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made,
                                            MPI_Request* request) {
  return carillon::shim::make_later(comm, request,
                                    [made, info](MPI_Comm comm, MPI_Request* request) {
                                      return host().Comm_idup_with_info(comm, info, made, request);
                                    });
}
#endif
#pragma GCC diagnostic pop

CARILLON_EXPORT int MPI_Comm_free(MPI_Comm* comm) {
  host();
  if (comm != nullptr) carillon::shim::await_copies(*comm);
  return host().Comm_free(comm);
}

CARILLON_EXPORT int MPI_Comm_disconnect(MPI_Comm* comm) {
  host();
  if (comm != nullptr) carillon::shim::await_copies(*comm);
  return host().Comm_disconnect(comm);
}

}  // extern "C"
