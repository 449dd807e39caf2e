// SPDX-License-Identifier: Apache-2.0
//
// Sessions. A program that has them need not call MPI_Init; then carillon starts when the first
// communicator is made of a group, by the processes of that group, and ends with the last of the
// program's sessions. What it needs of the host meanwhile belongs to a session of its own.
#include <cstdio>
#include <mutex>
#include <random>
#include <utility>

#include "comm_copy.h"
#include "fortran.h"
#include "made.h"
#include "process.h"
#include "thread_cache.h"

namespace carillon::shim {
namespace {

Session g_session{};
bool g_has_session = false;

// A group of the session, or none.
bool find_group(const char* name, MPI_Group* group) {
  return host().Group_from_session_pset(g_session, name, group) == MPI_SUCCESS;
}

// No other process makes one by this name at the same time.
bool make_self(MPI_Comm* self) {
  char tag[64];
  std::random_device random;
  std::snprintf(tag, sizeof(tag), "carillon.self.%08x%08x", random(), random());
  MPI_Group group{};
  if (!find_group("mpi://SELF", &group)) return false;
  const int status =
      host().Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, self);
  host().Group_free(&group);
  return status == MPI_SUCCESS;
}

// Whether others have threads is theirs to say: the host must not take this one's word that there
// are none.
bool init_session() {
  MPI_Info info{};
  if (host().Info_create(&info) != MPI_SUCCESS) return false;
  host().Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
  g_has_session = host().Session_init(info, MPI_ERRORS_RETURN, &g_session) == MPI_SUCCESS;
  host().Info_free(&info);
  return g_has_session;
}

int begin_session(MPI_Info info, MPI_Errhandler errhandler, Session* session) {
  if (host().Session_init == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;
  static std::once_flag prepared;
  std::call_once(prepared, prepare_process);
  const int status = host().Session_init(info, errhandler, session);
  if (status != MPI_SUCCESS || t_cache.depth > 0) return status;
  add_use(Use::kSession);
  (void)serve_fortran();  // so that the functions below hear of Fortran's calls
  return status;
}

int end_session(Session* session) {
  if (host().Session_finalize == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;
  if (t_cache.depth > 0) return host().Session_finalize(session);
  drop_use(Use::kSession);
  const int status = host().Session_finalize(session);
  if (status != MPI_SUCCESS) add_use(Use::kSession);
  return status;
}

}  // namespace

bool open_session() {
  return (g_has_session || init_session()) && make_self(&process().self) &&
         find_group("mpi://WORLD", &process().world_group);
}

void close_session() {
  if (!std::exchange(g_has_session, false)) return;
  const InsideHost guard;
  host().Session_finalize(&g_session);
}

}  // namespace carillon::shim

using carillon::shim::host;
using carillon::shim::Session;

extern "C" {

CARILLON_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, Session* session) {
  return carillon::shim::begin_session(info, errhandler, session);
}

CARILLON_EXPORT int MPI_Session_finalize(Session* session) {
  return carillon::shim::end_session(session);
}

// MPI's own Fortran functions call these, and tools.
CARILLON_EXPORT int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, Session* session) {
  return carillon::shim::begin_session(info, errhandler, session);
}

CARILLON_EXPORT int PMPI_Session_finalize(Session* session) {
  return carillon::shim::end_session(session);
}

// Within the host's, MPI_Init's part of carillon's life ends.
CARILLON_EXPORT int MPI_Finalize(void) {
  const int status = host().Finalize();
  carillon::shim::after_finalize();
  return status;
}

CARILLON_EXPORT int MPI_Comm_create_from_group(MPI_Group group, const char* tag, MPI_Info info,
                                               MPI_Errhandler errhandler, MPI_Comm* comm) {
  const auto create = host().Comm_create_from_group;
  if (create == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION;
  carillon::shim::let_pass_if_alone(host().Group_size, group);
  carillon::shim::Made result(comm);
  const int status = create(group, tag, info, errhandler, comm);
  if (result.give(status) && result.handle() != carillon::shim::g_host.comm_null) {
    carillon::shim::start_group(result.handle(), "MPI_Comm_create_from_group");
  }
  return status;
}

CARILLON_EXPORT int MPI_Intercomm_merge(MPI_Comm inter, int high, MPI_Comm* merged) {
  carillon::shim::Made result(merged);
  const int status = host().Intercomm_merge(inter, high, merged);
  if (result.give(status) && result.handle() != carillon::shim::g_host.comm_null) {
    carillon::shim::start_merged(result.handle());
  }
  return status;
}

}  // extern "C"
