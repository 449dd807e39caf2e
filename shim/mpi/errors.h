// SPDX-License-Identifier: Apache-2.0
//
// Errors of carillon as errors of MPI: through the communicator's error handler, with a class.
#pragma once

#include "carillon/carillon.h"
#include "host.h"
#include "process.h"

namespace carillon::shim {

/// Calls the error handler for a failed call of the C API, which the program knows as the function
/// or the collective (call_index); returns the error code, if it returns.
[[gnu::cold]] int raise_carillon_error(MPI_Comm comm, crl_status_t status, const char* function);
[[gnu::cold]] int raise_carillon_error(MPI_Comm comm, crl_status_t status, std::size_t call);

/// Its parts: the error code, and a line for the user, unless there was one. `comm`:
/// MPI_COMM_NULL where it may be gone.
int error_of(crl_status_t status);
[[gnu::cold]] void say_carillon_error(MPI_Comm comm, crl_status_t status, const char* function);

/// From now on a team that fails is reported here, by the MPI function that finds it out. Not
/// when that returns: other ranks that are told may end the job before.
void hear_of_failed_teams();

/// They were the host's, and another life of it may follow.
void forget_error_codes();

/// The same for an error MPI has a class for.
[[gnu::cold]] int raise_error(MPI_Comm comm, int error_class);

/// While one lives, what this thread raises on its communicator is kept for raise(), which comes
/// after its end: an error handler need not return, and what has begun with the call is to be put
/// away before.
class ErrorsKept {
 public:
  explicit ErrorsKept(MPI_Comm comm);
  ~ErrorsKept();
  ErrorsKept(const ErrorsKept&) = delete;
  ErrorsKept& operator=(const ErrorsKept&) = delete;
  struct Kept {
    MPI_Comm comm{};
    int error_class = MPI_SUCCESS;
    /// The code of a call that failed with it.
    int raise() const { return raise_error(comm, error_class); }
  };
  [[nodiscard]] const Kept& kept() const { return kept_; }
  /// False: none lives, or the last is another communicator's.
  static bool keep(MPI_Comm comm, int error_class);

 private:
  Kept kept_;
  ErrorsKept* outer_;
};

/// One of MPI 4's, which a program may find here though its MPI is older.
template <typename Function, typename... Arguments>
int call_newer(Function function, Arguments... arguments) {
  if (function != nullptr) return function(arguments...);
  return raise_error(comm_of_errors(), MPI_ERR_UNSUPPORTED_OPERATION);
}

/// The class of the error that the host raises where one buffer is passed as both input and output;
/// MPI_SUCCESS if it lets programs do so: Open MPI does, and MPICH if it is told to.
[[gnu::cold]] int alias_error();

/// Whether the host looks at the arguments of a call before it does anything: it may be told not
/// to.
[[gnu::cold]] bool host_checks_arguments();

/// Whether it refuses that buffer in MPI_Reduce, whatever is said of its types: Open MPI does.
inline bool refuses_alias_at_root() {
#if defined(OPEN_MPI)
  return host_checks_arguments();
#else
  return false;
#endif
}

}  // namespace carillon::shim
