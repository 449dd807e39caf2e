// SPDX-License-Identifier: Apache-2.0
//
// How carillon's processes first find each other: a non-blocking allgather of the host.
#pragma once

#include "carillon/carillon.h"
#include "host.h"

namespace carillon::shim {

/// Must stay where it is while carillon uses what oob() returned.
///
/// Where the first collective of a communicator is a non-blocking one, the processes come to what
/// follows in no common order with the program's calls. It all happens on a copy, then, which is
/// being made itself while others already wait for it.
struct Bootstrap {
  MPI_Comm comm{};
  int rank = 0, size = 0;
  bool copied = false;  // `comm` is ours
  MPI_Request copying = MPI_REQUEST_NULL;

  /// Begins to make the copy. False: the host refuses.
  [[nodiscard]] bool copy(MPI_Comm original);
  /// The copy is not needed any more.
  void release();

  crl_oob_t oob();
};

}  // namespace carillon::shim
