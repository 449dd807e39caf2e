// SPDX-License-Identifier: Apache-2.0
//
// How carillon's processes first find each other: a non-blocking allgather of the host.
#pragma once

#include "carillon/carillon.h"
#include "comm_copy.h"
#include "host.h"

namespace carillon::shim {

/// Must stay where it is while carillon uses what oob() returned.
///
/// Where the first collective of a communicator is a non-blocking one, the processes come to what
/// follows in no common order with the program's calls. It all happens on a copy, then, which is
/// being made itself while others already wait for it. One copy at a time: of two that are made of
/// one communicator at once, Open MPI 4.1 mistakes the one for the other, so that processes stand
/// still or crash. The one by which calls are compared (check.h) comes first, and is what is copied
/// then: by that time the program may have called something else on its communicator.
struct Bootstrap {
  MPI_Comm original{};
  int rank = 0, size = 0;
  bool copies = false;  // on a copy
  CommCopy own;

  /// From here on on a copy, which is made as soon as it may be.
  void copy() { copies = size > 1; }
  /// Where it happens.
  [[nodiscard]] MPI_Comm comm() const { return own.begun() ? own.comm() : original; }
  /// The same, for what the program calls on the original: errors are told as it has them told by
  /// now.
  [[nodiscard]] MPI_Comm comm_for_program() const;
  /// The copy is not needed any more.
  void release();

  crl_oob_t oob();
};

}  // namespace carillon::shim
