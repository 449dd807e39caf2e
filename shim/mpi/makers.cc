// SPDX-License-Identifier: Apache-2.0
//
// The functions that make a communicator, a window or a file of a communicator. Open MPI 4 does not
// bear that two copies of one communicator are made at once, and carillon copies a communicator
// whose first collective is a non-blocking one (bootstrap.h). So who would wait for the other ranks
// anyway waits for that copy first.
#include "makers.h"

#include "check.h"
#include "errors.h"
#include "flight.h"
#include "host.h"

namespace carillon::shim {

void await_copies(MPI_Comm comm) {
  if (comm == g_host.comm_null) return;
  await_copy(comm);
  await_team(comm);
}

}  // namespace carillon::shim

using carillon::shim::await_copies;
#ifdef OPEN_MPI
using carillon::shim::call_newer;
#endif
using carillon::shim::host;

extern "C" {

#define CARILLON_MAKER(symbol, parameters, arguments) \
  CARILLON_EXPORT int MPI_##symbol parameters {       \
    host();                                           \
    await_copies(comm);                               \
    return host().symbol arguments;                   \
  }
#include "makers.def"
#undef CARILLON_MAKER

#ifdef OPEN_MPI
// These should not wait for anybody; but their requests would never complete.
CARILLON_EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
  host();
  await_copies(comm);
  return host().Comm_idup(comm, made, request);
}

CARILLON_EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made,
                                            MPI_Request* request) {
  host();
  await_copies(comm);
  return call_newer(host().Comm_idup_with_info, comm, info, made, request);
}
#endif

CARILLON_EXPORT int MPI_Comm_free(MPI_Comm* comm) {
  host();
  if (comm != nullptr) await_copies(*comm);
  return host().Comm_free(comm);
}

CARILLON_EXPORT int MPI_Comm_disconnect(MPI_Comm* comm) {
  host();
  if (comm != nullptr) await_copies(*comm);
  return host().Comm_disconnect(comm);
}

}  // extern "C"
