// SPDX-License-Identifier: Apache-2.0
//
// MPICH's Fortran library, loaded when MPI runs already (fortran.cc has the others). Its functions
// for mpi_f08 that have no buffer call PMPI_X at once, with nothing before by which carillon could
// hear of the library. So these PMPI_X are carillon's, too, and look who calls: the library is then
// served as one that was there in MPI_Init, and this call is MPI_X. All others get the host's
// PMPI_X, as they wish: tools, and the host itself.
#include <dlfcn.h>

#include "fortran.h"
#include "host.h"
#include "process.h"
#include "thread_cache.h"

#ifndef OPEN_MPI

namespace carillon::shim {
namespace {

// Where other code was called from, so that it is not looked for again.
constexpr unsigned kOthers = 16;
constinit thread_local const void* t_others[kOthers]
    __attribute__((tls_model("initial-exec"))) = {};

bool called_by_fortran(const void* caller) {
  if (!is_awake()) return false;
  const void*& other = t_others[(hash_of(caller) >> 32) % kOthers];
  if (other == caller) [[likely]]
    return false;
  if (is_served_fortran(caller)) return true;
  serve_late_fortran();
  if (is_served_fortran(caller)) return true;
  other = caller;
  return false;
}

// The function behind this library's. Not always the host's: a program, or a tool in front, may
// have one of its own, which calls the next one, too, and came here by that.
template <typename Function>
Function next_of(Function of_host, const char* symbol) {
  void* const next = dlsym(RTLD_NEXT, symbol);
  return next == nullptr ? of_host : reinterpret_cast<Function>(next);  // loaded privately
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::called_by_fortran;
using carillon::shim::host;

extern "C" {

#define CARILLON_FOR_FORTRAN(name, parameters, arguments)                            \
  CARILLON_EXPORT int PMPI_##name parameters {                                       \
    if (called_by_fortran(__builtin_return_address(0))) return MPI_##name arguments; \
    static const auto next = carillon::shim::next_of(host().name, "PMPI_" #name);    \
    return next arguments;                                                           \
  }

CARILLON_FOR_FORTRAN(Barrier, (MPI_Comm comm), (comm))
CARILLON_FOR_FORTRAN(Ibarrier, (MPI_Comm comm, MPI_Request* request), (comm, request))
CARILLON_FOR_FORTRAN(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
CARILLON_FOR_FORTRAN(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
                     (count, requests, statuses))
CARILLON_FOR_FORTRAN(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),
                     (count, requests, index, status))
CARILLON_FOR_FORTRAN(Waitsome,
                     (int count, MPI_Request requests[], int* done, int indices[],
                      MPI_Status statuses[]),
                     (count, requests, done, indices, statuses))
CARILLON_FOR_FORTRAN(Test, (MPI_Request * request, int* done, MPI_Status* status),
                     (request, done, status))
CARILLON_FOR_FORTRAN(Testall, (int count, MPI_Request requests[], int* done, MPI_Status statuses[]),
                     (count, requests, done, statuses))
CARILLON_FOR_FORTRAN(Testany,
                     (int count, MPI_Request requests[], int* index, int* done, MPI_Status* status),
                     (count, requests, index, done, status))
CARILLON_FOR_FORTRAN(Testsome,
                     (int count, MPI_Request requests[], int* done, int indices[],
                      MPI_Status statuses[]),
                     (count, requests, done, indices, statuses))
CARILLON_FOR_FORTRAN(Request_get_status, (MPI_Request request, int* done, MPI_Status* status),
                     (request, done, status))
CARILLON_FOR_FORTRAN(Request_free, (MPI_Request * request), (request))
CARILLON_FOR_FORTRAN(Start, (MPI_Request * request), (request))
CARILLON_FOR_FORTRAN(Startall, (int count, MPI_Request requests[]), (count, requests))
CARILLON_FOR_FORTRAN(Cancel, (MPI_Request * request), (request))
CARILLON_FOR_FORTRAN(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status),
                     (source, tag, comm, status))
CARILLON_FOR_FORTRAN(Mprobe,
                     (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status),
                     (source, tag, comm, message, status))
CARILLON_FOR_FORTRAN(Iprobe, (int source, int tag, MPI_Comm comm, int* found, MPI_Status* status),
                     (source, tag, comm, found, status))
CARILLON_FOR_FORTRAN(Improbe,
                     (int source, int tag, MPI_Comm comm, int* found, MPI_Message* message,
                      MPI_Status* status),
                     (source, tag, comm, found, message, status))
CARILLON_FOR_FORTRAN(Win_free, (MPI_Win * win), (win))
CARILLON_FOR_FORTRAN(Win_test, (MPI_Win win, int* done), (win, done))
CARILLON_FOR_FORTRAN(Win_wait, (MPI_Win win), (win))
CARILLON_FOR_FORTRAN(Comm_free, (MPI_Comm * comm), (comm))
CARILLON_FOR_FORTRAN(Comm_disconnect, (MPI_Comm * comm), (comm))
#define CARILLON_MAKER(name, parameters, arguments, ...) \
  CARILLON_FOR_FORTRAN(name, parameters, arguments)
#include "makers.def"
#undef CARILLON_MAKER
CARILLON_FOR_FORTRAN(Comm_idup, (MPI_Comm comm, MPI_Comm* made, MPI_Request* request),
                     (comm, made, request))
CARILLON_FOR_FORTRAN(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made),
                     (comm, group, tag, made))
CARILLON_FOR_FORTRAN(Intercomm_merge, (MPI_Comm inter, int high, MPI_Comm* merged),
                     (inter, high, merged))
CARILLON_FOR_FORTRAN(Alloc_mem, (MPI_Aint size, MPI_Info info, void* baseptr),
                     (size, info, baseptr))
CARILLON_FOR_FORTRAN(Op_free, (MPI_Op * op), (op))
CARILLON_FOR_FORTRAN(Type_free, (MPI_Datatype * type), (type))
#if MPI_VERSION >= 4
CARILLON_FOR_FORTRAN(Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request* request),
                     (comm, info, request))
CARILLON_FOR_FORTRAN(Comm_create_from_group,
                     (MPI_Group group, const char* tag, MPI_Info info, MPI_Errhandler errhandler,
                      MPI_Comm* made),
                     (group, tag, info, errhandler, made))
CARILLON_FOR_FORTRAN(Parrived, (MPI_Request request, int partition, int* done),
                     (request, partition, done))
#endif
#undef CARILLON_FOR_FORTRAN

}  // extern "C"

#endif
