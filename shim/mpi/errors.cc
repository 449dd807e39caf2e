// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <strings.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/team_failure.h"
#include "call.h"
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

constinit thread_local ErrorsKept* t_errors_kept = nullptr;

// A setting of the host's, which it reads from the environment; `otherwise`: it has none of that
// name that is one number.
bool host_setting(const char* name, bool otherwise) {
  const InsideHost guard;
  int provided = 0, index = 0, values = 0;
  int value = otherwise ? 1 : 0;
  if (host().T_init_thread(MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) return otherwise;
  MPI_T_cvar_handle handle{};
  if (host().T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      host().T_cvar_handle_alloc(index, nullptr, &handle, &values) == MPI_SUCCESS) {
    if (values == 1) host().T_cvar_read(handle, &value);
    host().T_cvar_handle_free(&handle);
  }
  host().T_finalize();
  return value != 0;
}

}  // namespace

ErrorsKept::ErrorsKept(MPI_Comm comm)
    : kept_{.comm = comm}, outer_(std::exchange(t_errors_kept, this)) {}

ErrorsKept::~ErrorsKept() { t_errors_kept = outer_; }

bool ErrorsKept::keep(MPI_Comm comm, int error_class) {
  if (t_errors_kept == nullptr || t_errors_kept->kept_.comm != comm) return false;
  t_errors_kept->kept_.error_class = error_class;
  return true;
}

int raise_error(MPI_Comm comm, int error_class) {
  if (ErrorsKept::keep(comm, error_class)) return error_class;
  // Not inside the host: the handler is the program's, and may call collectives, or never return.
  const Unobserved guard;
  host().Comm_call_errhandler(comm, error_class);
  return error_class;
}

int alias_error() {
#if defined(OPEN_MPI)
  return MPI_SUCCESS;
#else
  static const int error_class =
      host_setting("MPIR_CVAR_COLL_ALIAS_CHECK", true) ? MPI_ERR_BUFFER : MPI_SUCCESS;
  return error_class;
#endif
}

bool host_checks_arguments() {
#if defined(OPEN_MPI)
  static const bool checks = host_setting("mpi_param_check", false);
#else
  static const bool checks = host_setting("MPIR_CVAR_ERROR_CHECKING", false);
#endif
  return checks;
}

namespace {

// What was said last: once, not for every call on a broken communicator.
std::atomic<crl_status_t> g_said{CRL_OK};

const char* advice_for(crl_status_t status) {
  switch (status) {
    case CRL_ERR_PEER_DEAD:
      return "see what the ranks that ended have said, and start the job again";
    case CRL_ERR_TIMEOUT: return "see whether all ranks run, and run with the interposer";
    case CRL_ERR_MISMATCH: return "carillon run --check finds the first call that does not fit";
    case CRL_ERR_NO_MEMORY: return "run with fewer ranks on a node, or with smaller messages";
    default: return "mend that, and start the job again";
  }
}

// The MPI function that this thread is in, if it is one of carillon's and calls what fails itself.
std::string current_function() {
  std::array<void*, 64> frames = {};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&current_function), &here);
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) - 1;
    Dl_info place{};
    if (dladdr(reinterpret_cast<void*>(address), &place) == 0 ||
        place.dli_fbase != here.dli_fbase || place.dli_sname == nullptr) {
      continue;
    }
    const std::string_view name = place.dli_sname;
    if (name.starts_with("MPI_") || name.starts_with("PMPI_")) return std::string(name);
  }
  return {};
}

void say_failed(const TeamFailure& failure) {
  g_said.store(static_cast<crl_status_t>(failure.why.code()));
  std::string function = current_function();
  std::string collective(failure.collective);
  if (function.empty()) function = "no function of MPI";  // in the servlet, say
  const bool is_it = strcasecmp(function.c_str() + function.find('_') + 1, collective.c_str()) == 0;
  if (!is_it && !collective.empty()) function += " (" + collective + ")";
  const std::string team(failure.team.empty() ? "a communicator without a name" : failure.team);
  say("%s on %s, rank %d of %d: %s; collectives on it fail from now on; %s", function.c_str(),
      team.c_str(), failure.rank, failure.size, failure.why.to_string().c_str(),
      advice_for(static_cast<crl_status_t>(failure.why.code())));
}

}  // namespace

void hear_of_failed_teams() {
  std::array<void*, 1> frame = {};
  backtrace(frame.data(), 1);  // the first one loads a library, which say_failed must not
  g_say_team_failure.store(say_failed, std::memory_order_release);
}

void say_carillon_error(MPI_Comm comm, crl_status_t status, const char* function) {
  if (g_said.exchange(status) == status) return;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (comm != g_host.comm_null) {
    const InsideHost guard;
    host().Comm_get_name(comm, name, &length);
  }
  const bool known = comm != g_host.comm_null;
  say("%s%s%s, rank %d of MPI_COMM_WORLD: %s; %s", function, known ? " on " : "",
      !known       ? ""
      : length > 0 ? name
                   : "a communicator without a name",
      process().world_rank, crl_last_error(), advice_for(status));
}

int raise_carillon_error(MPI_Comm comm, crl_status_t status, const char* function) {
  say_carillon_error(comm, status, function);
  return raise_error(comm, error_of(status));
}

int raise_carillon_error(MPI_Comm comm, crl_status_t status, std::size_t call) {
  return raise_carillon_error(comm, status, ("MPI_" + call_name(call)).c_str());
}

}  // namespace carillon::shim
