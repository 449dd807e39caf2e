// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host.h"

namespace carillon::shim {

/// What a function of the host makes. Where a program's error handler has returned, MPICH 5 with
/// the ABI of MPI 5 says of a call that it has refused that all went well; but then nothing is
/// there.
template <typename Handle>
class Made {
 public:
  /// `made`: where the program wants it. The host is to write it where it points afterwards.
  explicit Made(Handle*& made) : to_(made) {
    if (made != nullptr) made = &handle_;
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  /// Gives it to the program. Whether there is one, after a call of that status.
  bool give(int status) {
    if (handle_ == Handle{}) return false;
    *to_ = handle_;
    return status == MPI_SUCCESS;
  }
  [[nodiscard]] Handle handle() const { return handle_; }

 private:
  Handle* const to_;
  Handle handle_{};  // no handle of an MPI's, nor MPI_COMM_NULL
};

}  // namespace carillon::shim
