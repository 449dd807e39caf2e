// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace carillon::shim {

/// Before the contexts go: what MPI_Alloc_mem has given stays the program's, but is no context's.
void forget_memory();

}  // namespace carillon::shim
