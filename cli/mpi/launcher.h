// SPDX-License-Identifier: Apache-2.0
//
// The launcher that belongs to an MPI library, and the MPIs of this machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/linkage.h"

namespace carillon::cli {

struct Launcher {
  enum class Kind { kOpenMpi, kHydra };  ///< whose options it takes
  Kind kind = Kind::kOpenMpi;
  Path path;
  std::string version;  ///< the first line of its --version
};

/// The one beside the library, else one of its kind on PATH.
std::optional<Launcher> find_launcher(const Linkage& linkage);
/// Fails with what to do if there is none.
Launcher require_launcher(const Linkage& linkage);

/// `launcher` starting `ranks` of `program`, with what it needs to do so on this machine, and
/// `extra` options.
Arguments launch_command(const Launcher& launcher, int ranks, const Arguments& extra,
                         const Arguments& program);

/// Fails inside a rank of a launcher, where another launcher would start ranks of ranks. `command`
/// is what was asked for, e.g. "carillon run".
void refuse_inside_launcher(std::string_view command);

/// An MPI of this machine that carillon has a program of its own for (e.g. carillon-bench).
struct Installed {
  Abi abi = Abi::kOpenMpi;
  std::optional<Launcher> launcher;
  bool has_interposer = false;
};
/// One per Abi.
std::vector<Installed> installed_mpis();

}  // namespace carillon::cli
