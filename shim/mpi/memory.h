// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "carillon/carillon.h"

namespace carillon::shim {

/// Where the program's large blocks are, if they are in a shared heap (shim/heap).
void tell_heap(crl_context_config_t* config);
/// Before the context goes: what MPI_Alloc_mem has given stays the program's, but is no context's.
void forget_memory(crl_context_h context);

}  // namespace carillon::shim
