// SPDX-License-Identifier: Apache-2.0
//
// Several requests at once: of collectives, messages, and none.
#pragma once

#include <vector>

#include "operation.h"

namespace mpi_test {

/// On `groups`, at least one of which this process may not be in. `messages` is a communicator for
/// messages of the world, or none. Completed twice: once by carillon's functions, once by the
/// MPI's.
void try_batch(const std::vector<Group>& groups, MPI_Comm messages, std::uint64_t seed);

}  // namespace mpi_test
