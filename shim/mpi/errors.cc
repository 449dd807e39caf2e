// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <atomic>
#include <mutex>

#include "observe.h"
#include "process.h"
#include "thread_cache.h"

namespace carillon::shim {
namespace {

struct PeerError {
  std::mutex mutex;
  int code = MPI_SUCCESS;  // none yet
};
PeerError g_peer_error;

int make_peer_error() {
  int error_class = MPI_ERR_OTHER, error_code = MPI_ERR_OTHER;
  if (host().Add_error_class(&error_class) != MPI_SUCCESS) return MPI_ERR_OTHER;
  if (host().Add_error_code(error_class, &error_code) != MPI_SUCCESS) return error_class;
  host().Add_error_string(error_class, "carillon: a process of the communicator is dead");
  host().Add_error_string(error_code,
                          "carillon: a process of the communicator is dead or does not answer; "
                          "the message on stderr tells which");
  return error_code;
}

// A class of our own, for what MPI has none: a peer is dead, or did not come.
int peer_error_code() {
  const std::lock_guard lock(g_peer_error.mutex);
  if (g_peer_error.code == MPI_SUCCESS) g_peer_error.code = make_peer_error();
  return g_peer_error.code;
}

}  // namespace

void forget_error_codes() {
  const std::lock_guard lock(g_peer_error.mutex);
  g_peer_error.code = MPI_SUCCESS;
}

int error_of(crl_status_t status) {
  switch (status) {
    case CRL_ERR_NO_MEMORY: return MPI_ERR_NO_MEM;
    case CRL_ERR_PEER_DEAD:
    case CRL_ERR_TIMEOUT: return peer_error_code();
    case CRL_ERR_MISMATCH: return MPI_ERR_TRUNCATE;
    case CRL_ERR_INVALID_ARGUMENT: return MPI_ERR_ARG;
    case CRL_ERR_INTERNAL: return MPI_ERR_INTERN;
    default: return MPI_ERR_OTHER;
  }
}

namespace {

#if !defined(OPEN_MPI)
// MPICH's setting, which it reads from the environment.
bool looks_for_aliases() {
  const InsideHost guard;
  int provided = 0, index = 0, values = 0, looks = 1;
  if (host().T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return true;
  MPI_T_cvar_handle handle{};
  if (host().T_cvar_get_index("MPIR_CVAR_COLL_ALIAS_CHECK", &index) == MPI_SUCCESS &&
      host().T_cvar_handle_alloc(index, nullptr, &handle, &values) == MPI_SUCCESS) {
    // No other type is known; it would look like a setting that is on.
    if (values == 1) host().T_cvar_read(handle, &looks);
    host().T_cvar_handle_free(&handle);
  }
  host().T_finalize();
  return looks != 0;
}
#endif

}  // namespace

int raise_error(MPI_Comm comm, int error_class) {
  // Not inside the host: the handler is the program's, and may call collectives, or never return.
  const Unobserved guard;
  host().Comm_call_errhandler(comm, error_class);
  return error_class;
}

int alias_error() {
#if defined(OPEN_MPI)
  return MPI_SUCCESS;
#else
  static const int error_class = looks_for_aliases() ? MPI_ERR_BUFFER : MPI_SUCCESS;
  return error_class;
#endif
}

void say_carillon_error(crl_status_t status) {
  static std::atomic<crl_status_t> said{CRL_OK};
  if (said.exchange(status) != status) {  // once, not for every call on a broken communicator
    say("rank %d: %s", process().world_rank, crl_last_error());
  }
}

int raise_carillon_error(MPI_Comm comm, crl_status_t status) {
  say_carillon_error(status);
  return raise_error(comm, error_of(status));
}

}  // namespace carillon::shim
