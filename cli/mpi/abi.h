// SPDX-License-Identifier: Apache-2.0
//
// The binary interfaces of MPI that there is an interposer for.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "support/process.h"

namespace carillon::cli {

enum class Abi { kOpenMpi, kMpich, kStandard };
inline constexpr std::array kAbis = {Abi::kOpenMpi, Abi::kMpich, Abi::kStandard};

struct AbiNames {
  std::string_view name;        ///< what --mpi takes, and the end of our programs' names
  std::string_view title;       ///< for a person
  std::string_view interposer;  ///< the preload library
  std::string_view packages;    ///< of Debian
};
const AbiNames& names_of(Abi abi);

/// "openmpi", "mpich", "mpiabi" and other names of the same interfaces; else fails.
Abi abi_from_name(std::string_view name);
/// Of an MPI library's soname, e.g. libmpi.so.40; nothing if it is not one.
std::optional<Abi> abi_of_soname(std::string_view soname);

/// The preload library, whether it is there or not; and the same, failing if it is not.
Path interposer_path(Abi abi);
Path require_interposer(Abi abi);
/// The preload library of the shared heap.
Path require_shared_heap();

}  // namespace carillon::cli
