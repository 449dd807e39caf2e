// SPDX-License-Identifier: Apache-2.0
//
// The MPI programs that are built once per MPI and stand beside the command:
// carillon-bench-openmpi, collectives-mpich, ...
#pragma once

#include <string_view>
#include <vector>

#include "mpi/launcher.h"

namespace carillon::cli {

struct OwnProgram {
  Abi abi = Abi::kOpenMpi;
  Path file;
  Launcher launcher;

  /// Its command with carillon's interposer on the ranks, and options of exec, or with its MPI
  /// alone.
  [[nodiscard]] Arguments with_carillon(int ranks, const Arguments& launcher_options,
                                        const Arguments& exec_options,
                                        const Arguments& arguments) const;
  [[nodiscard]] Arguments alone(int ranks, const Arguments& arguments) const;
};

/// "carillon-bench" for one MPI; fails if something of it is missing.
OwnProgram require_own_program(std::string_view name, Abi abi);
/// The same program, built with some other installation of an MPI.
OwnProgram own_program_at(const Path& file);
/// For all MPIs where nothing is missing; fails if that is none.
std::vector<OwnProgram> own_programs(std::string_view name);

}  // namespace carillon::cli
