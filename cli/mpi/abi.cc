// SPDX-License-Identifier: Apache-2.0
#include "mpi/abi.h"

#include "support/failure.h"

namespace carillon::cli {
namespace {

constexpr std::array<AbiNames, 3> kNames = {
    AbiNames{"openmpi", "Open MPI", "libcarillon_ompi.so", "openmpi-bin libopenmpi-dev"},
    AbiNames{"mpich", "MPICH", "libcarillon_mpich.so", "mpich libmpich-dev"},
    AbiNames{"mpiabi", "the MPI 5 standard ABI", "libcarillon_mpiabi.so", ""},
};

struct Alias {
  std::string_view name;
  Abi abi;
};
constexpr std::array kAliases = {
    Alias{"ompi", Abi::kOpenMpi},  Alias{"impi", Abi::kMpich},     Alias{"intelmpi", Abi::kMpich},
    Alias{"mvapich", Abi::kMpich}, Alias{"mvapich2", Abi::kMpich}, Alias{"mpi_abi", Abi::kStandard},
};

struct Library {
  std::string_view prefix;
  Abi abi;
};
constexpr std::array kLibraries = {
    Library{"libmpi.so.40", Abi::kOpenMpi},    Library{"libmpi.so.12", Abi::kMpich},
    Library{"libmpich.so.12", Abi::kMpich},    Library{"libmpi_cray.so.12", Abi::kMpich},
    Library{"libmpi_abi.so.", Abi::kStandard},
};

}  // namespace

const AbiNames& names_of(Abi abi) { return kNames.at(static_cast<std::size_t>(abi)); }

Abi abi_from_name(std::string_view name) {
  for (const Abi abi : kAbis) {
    if (names_of(abi).name == name) return abi;
  }
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return alias.abi;
  }
  fail(
      "there is no MPI \"{}\"; there are openmpi, mpich (also for Intel MPI and MVAPICH) and "
      "mpiabi",
      name);
}

std::optional<Abi> abi_of_soname(std::string_view soname) {
  for (const Library& library : kLibraries) {
    if (soname.starts_with(library.prefix)) return library.abi;
  }
  return std::nullopt;
}

Path interposer_path(Abi abi) { return library_folder() / names_of(abi).interposer; }

Path require_interposer(Abi abi) {
  Path path = interposer_path(abi);
  if (std::filesystem::exists(path)) return path;
  const AbiNames& names = names_of(abi);
  if (abi == Abi::kStandard) {
    fail(
        "no interposer for {}: {} was not built; put an mpicc_abi on PATH (e.g. pip install "
        "mpich) and build carillon again",
        names.title, path.string());
  }
  fail(
      "no interposer for {}: {} was not built; install its compiler wrapper (Debian: apt-get "
      "install {}) and build carillon again",
      names.title, path.string(), names.packages);
}

Path require_shared_heap() {
  Path path = library_folder() / "libcarillon_heap.so";
  if (!std::filesystem::exists(path)) {
    fail("no shared heap: {} is not there; build carillon again", path.string());
  }
  return path;
}

}  // namespace carillon::cli
