// SPDX-License-Identifier: Apache-2.0
#include "mpi/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "support/failure.h"

namespace carillon::cli {
namespace {

std::vector<std::string> launcher_names(Abi abi) {
  switch (abi) {
    case Abi::kOpenMpi: return {"mpirun.openmpi", "mpiexec.openmpi", "mpirun", "mpiexec"};
    case Abi::kMpich:
      return {"mpiexec.mpich", "mpiexec.hydra", "mpirun.mpich", "mpiexec", "mpirun"};
    case Abi::kStandard: return {"mpiexec", "mpirun", "mpiexec.hydra"};
  }
  return {};
}

// bin beside the library's folder: PREFIX/lib/libmpi.so, PREFIX/lib/x86_64-linux-gnu/libmpi.so.
// Without symbolic links on the way: Open MPI takes its own prefix from the path it is run by, and
// /bin, on most systems a link, would give it an empty one.
std::vector<Path> folders_beside(const Path& library) {
  std::vector<Path> folders;
  if (library.empty()) return folders;
  std::error_code ignored;
  const Path given = std::filesystem::canonical(library.parent_path(), ignored);
  const Path real = std::filesystem::canonical(library, ignored).parent_path();
  for (const Path& lib : {given, real}) {
    if (lib.empty()) continue;
    folders.push_back(lib.parent_path() / "bin");
    folders.push_back(lib.parent_path().parent_path() / "bin");
  }
  return folders;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What its --version says it is.
std::optional<Launcher> identify(const Path& path) {
  RunOptions options;
  options.drop_stderr = true;
  const Captured said = run_program({path.string(), "--version"}, options);
  if (said.status != 0) return std::nullopt;
  Launcher launcher{.path = path, .version = said.out.substr(0, said.out.find('\n'))};
  if (contains(said.out, "Open MPI") || contains(said.out, "OpenRTE") ||
      contains(said.out, "PRRTE")) {
    launcher.kind = Launcher::Kind::kOpenMpi;
    // "mpirun (Open MPI) 5.0.7", "mpirun.openmpi (OpenRTE) 4.1.4"
    const std::size_t after = launcher.version.find(") ");
    if (after != std::string::npos) {
      launcher.version = "Open MPI " + launcher.version.substr(after + 2);
    }
    return launcher;
  }
  launcher.kind = Launcher::Kind::kHydra;
  if (contains(said.out, "Intel")) return launcher;
  if (!contains(said.out, "HYDRA")) return std::nullopt;
  // "HYDRA build details:\n    Version:    4.0.2\n": a name and a number say more.
  const std::size_t at = said.out.find("Version:");
  const std::size_t from = said.out.find_first_not_of(" \t", at + 8);
  if (at != std::string::npos && from != std::string::npos) {
    launcher.version = "MPICH " + said.out.substr(from, said.out.find('\n', from) - from);
  }
  return launcher;
}

bool fits(const Launcher& launcher, Abi abi) {
  switch (abi) {
    case Abi::kOpenMpi: return launcher.kind == Launcher::Kind::kOpenMpi;
    case Abi::kMpich: return launcher.kind == Launcher::Kind::kHydra;
    case Abi::kStandard: return true;
  }
  return false;
}

std::optional<Launcher> try_launcher(const Path& path, Abi abi) {
  if (access(path.c_str(), X_OK) != 0) return std::nullopt;
  std::optional<Launcher> launcher = identify(path);
  return launcher && fits(*launcher, abi) ? launcher : std::nullopt;
}

}  // namespace

std::optional<Launcher> find_launcher(const Linkage& linkage) {
  const std::vector<std::string> names = launcher_names(linkage.abi);
  for (const Path& folder : folders_beside(linkage.library)) {
    for (const std::string& name : names) {
      if (auto launcher = try_launcher(folder / name, linkage.abi)) return launcher;
    }
  }
  if (linkage.abi == Abi::kStandard) {  // the names alone could be any MPI's
    const std::optional<Path> wrapper = find_in_path("mpicc_abi");
    if (!wrapper) return std::nullopt;
    for (const std::string& name : names) {
      if (auto launcher = try_launcher(wrapper->parent_path() / name, linkage.abi)) return launcher;
    }
    return std::nullopt;
  }
  for (const std::string& name : names) {
    const std::optional<Path> path = find_in_path(name);
    if (!path) continue;
    if (auto launcher = try_launcher(*path, linkage.abi)) return launcher;
  }
  return std::nullopt;
}

Launcher require_launcher(const Linkage& linkage) {
  if (auto launcher = find_launcher(linkage)) return *launcher;
  const AbiNames& names = names_of(linkage.abi);
  const std::string install =
      names.packages.empty()
          ? std::string()
          : fmt::format(" install it (Debian: apt-get install {}), put it on PATH,",
                        names.packages);
  fail(
      "no launcher (mpirun, mpiexec) for {} found beside {} or on PATH;{} or start the ranks "
      "yourself, e.g. srun -n 4 carillon exec PROGRAM",
      names.title, linkage.library.empty() ? "its library" : linkage.library.string(), install);
}

Arguments launch_command(const Launcher& launcher, int ranks, const Arguments& extra,
                         const Arguments& program) {
  Arguments command = {launcher.path.string(), "-n", std::to_string(ranks)};
  if (launcher.kind == Launcher::Kind::kOpenMpi) {
    command.emplace_back("--oversubscribe");
    if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  }
  command.insert(command.end(), extra.begin(), extra.end());
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

void refuse_inside_launcher(std::string_view command) {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (std::getenv(name) == nullptr) continue;  // NOLINT(concurrency-mt-unsafe)
    fail(
        "{} starts the ranks itself, but a launcher has already started this one ({} is set); "
        "under a launcher use carillon exec PROGRAM",
        command, name);
  }
}

std::vector<Installed> installed_mpis() {
  std::vector<Installed> list;
  list.reserve(kAbis.size());
  for (const Abi abi : kAbis) {
    list.push_back({.abi = abi,
                    .launcher = find_launcher({abi, {}}),
                    .has_interposer = std::filesystem::exists(interposer_path(abi))});
  }
  return list;
}

}  // namespace carillon::cli
