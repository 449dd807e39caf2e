// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "carillon/carillon.h"

namespace carillon::shim {

/// Before the context goes: what MPI_Alloc_mem has given stays the program's, but is no context's.
void forget_memory(crl_context_h context);

}  // namespace carillon::shim
