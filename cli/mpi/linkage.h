// SPDX-License-Identifier: Apache-2.0
//
// Which MPI a program will load: asked of the loader itself for compiled programs, of the
// interpreter for scripts, and of mpi4py for Python.
#pragma once

#include <string>

#include "mpi/abi.h"
#include "support/process.h"

namespace carillon::cli {

struct Linkage {
  Abi abi = Abi::kOpenMpi;
  Path library;  ///< the MPI library; empty where only its name is known
};

/// Of `program` with its arguments (program[0] is what a shell would run). Fails with what to do
/// if there is no such program, it cannot be run, or no MPI is to be found in it.
Linkage find_linkage(const Arguments& program);
/// The same where the user may have said which (openmpi, mpich or mpiabi; empty: not said): then
/// that, and its library only if it can be found.
Linkage find_linkage(const Arguments& program, const std::string& mpi);

/// The program's file; fails if there is none or it may not be run.
Path require_program(const std::string& name);

}  // namespace carillon::cli
