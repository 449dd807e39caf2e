// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "carillon/carillon.h"
#include "host.h"

namespace carillon::shim {

/// A window of MPI_Win_allocate_shared, just made, by all ranks of the communicator: from now on
/// its memory is read in place, if these are all ranks of a node.
void share_window(MPI_Comm comm, MPI_Win window);
/// Before the context goes: the windows stay the program's, and their memory is as other memory.
void forget_windows(crl_context_h context);
/// Where another life of carillon may follow (process.cc).
void stop_windows();

}  // namespace carillon::shim
