// SPDX-License-Identifier: Apache-2.0
#include "mpi/python.h"

namespace carillon::cli {
namespace {

constexpr const char* kFindFiles =
    "import glob, importlib.util as u\n"
    "spec = u.find_spec('mpi4py')\n"
    "folders = spec.submodule_search_locations if spec else []\n"
    "files = [f for d in folders for f in glob.glob(d + '/MPI*.so')]\n"
    "print('\\n'.join(files) if len(files) == 1 else '')\n";

constexpr const char* kFindLibraries =
    "import mpi4py\n"
    "mpi4py.rc.initialize = mpi4py.rc.finalize = False\n"
    "import mpi4py.MPI\n"
    "maps = {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}\n"
    "print('\\n'.join(sorted(maps)))\n";

std::vector<Path> run_python(const std::string& interpreter, const char* code) {
  RunOptions options;
  options.environment = {{"LD_PRELOAD", std::nullopt}};
  options.drop_stderr = true;
  std::vector<Path> paths;
  options.line = [&](std::string_view line) {
    if (line.starts_with('/')) paths.emplace_back(line);
  };
  run_program({interpreter, "-c", code}, options);
  return paths;
}

}  // namespace

std::vector<Path> mpi4py_files(const std::string& interpreter) {
  return run_python(interpreter, kFindFiles);
}

std::vector<Path> mpi4py_libraries(const std::string& interpreter) {
  return run_python(interpreter, kFindLibraries);
}

}  // namespace carillon::cli
