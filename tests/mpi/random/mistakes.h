// SPDX-License-Identifier: Apache-2.0
//
// Wrong arguments: what the MPI says alone, it says under carillon.
#pragma once

#include "operation.h"

namespace mpi_test {

void try_mistake(const Group& parent, std::uint64_t seed);

}  // namespace mpi_test
