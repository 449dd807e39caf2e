// SPDX-License-Identifier: Apache-2.0
//
// How carillon's processes first find each other: a non-blocking allgather of the host.
#pragma once

#include "carillon/carillon.h"
#include "host.h"

namespace carillon::shim {

/// Must stay where it is while carillon uses what oob() returned.
struct Bootstrap {
  MPI_Comm comm{};
  int rank = 0, size = 0;

  crl_oob_t oob();
};

}  // namespace carillon::shim
