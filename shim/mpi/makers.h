// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host.h"

namespace carillon::shim {

/// Waits until no copy of a communicator is being made for carillon. All its ranks come here, after
/// the same collectives on it.
void await_copies(MPI_Comm comm);

}  // namespace carillon::shim
