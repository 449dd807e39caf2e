// SPDX-License-Identifier: Apache-2.0
#include "mpi/own_program.h"

#include "support/failure.h"

namespace carillon::cli {
namespace {

Path own_file(std::string_view name, Abi abi) {
  return own_path().parent_path() / fmt::format("{}-{}", name, names_of(abi).name);
}

}  // namespace

Arguments OwnProgram::with_carillon(int ranks, const Arguments& launcher_options,
                                    const Arguments& exec_options,
                                    const Arguments& arguments) const {
  Arguments program = {own_path().string(), "exec", "--mpi", std::string(names_of(abi).name)};
  program.insert(program.end(), exec_options.begin(), exec_options.end());
  program.insert(program.end(), {"--", file.string()});
  program.insert(program.end(), arguments.begin(), arguments.end());
  return launch_command(launcher, ranks, launcher_options, program);
}

Arguments OwnProgram::alone(int ranks, const Arguments& arguments) const {
  Arguments program = {file.string()};
  program.insert(program.end(), arguments.begin(), arguments.end());
  return launch_command(launcher, ranks, {}, program);
}

OwnProgram own_program_at(const Path& file) {
  const Linkage linkage = find_linkage({file.string()});
  require_interposer(linkage.abi);
  return {linkage.abi, file, require_launcher(linkage)};
}

OwnProgram require_own_program(std::string_view name, Abi abi) {
  const Path file = own_file(name, abi);
  if (!std::filesystem::exists(file)) {
    const AbiNames& names = names_of(abi);
    fail("{} was not built for {}; install its compiler wrapper ({}) and build carillon again",
         file.string(), names.title,
         names.packages.empty() ? std::string("mpicc_abi")
                                : fmt::format("Debian: apt-get install {}", names.packages));
  }
  return own_program_at(file);
}

std::vector<OwnProgram> own_programs(std::string_view name) {
  std::vector<OwnProgram> programs;
  std::string lost;  // why one that is there cannot be used
  for (const Abi abi : kAbis) {
    const Path file = own_file(name, abi);
    if (!std::filesystem::exists(file)) continue;
    try {
      programs.push_back(own_program_at(file));
    } catch (const Failure& failure) {  // its MPI has gone since it was built
      if (lost.empty()) lost = fmt::format("{}: {}", file.string(), failure.what());
    }
  }
  if (programs.empty() && !lost.empty()) fail("{}", lost);
  if (programs.empty()) {
    fail(
        "there is no {}-openmpi, -mpich or -mpiabi in {}; install an MPI "
        "(Debian: apt-get install openmpi-bin libopenmpi-dev) and build carillon again",
        name, own_path().parent_path().string());
  }
  return programs;
}

}  // namespace carillon::cli
