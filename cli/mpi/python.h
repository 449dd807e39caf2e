// SPDX-License-Identifier: Apache-2.0
//
// What MPI a Python's mpi4py loads.
#pragma once

#include <string>
#include <vector>

#include "support/process.h"

namespace carillon::cli {

/// The extension module of mpi4py, if there is exactly one (wheels carry one per MPI and choose
/// when imported); MPI is not loaded.
std::vector<Path> mpi4py_files(const std::string& interpreter);

/// The shared libraries that are there once mpi4py.MPI is imported (MPI is not initialised).
std::vector<Path> mpi4py_libraries(const std::string& interpreter);

}  // namespace carillon::cli
