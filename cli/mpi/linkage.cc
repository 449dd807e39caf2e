// SPDX-License-Identifier: Apache-2.0
#include "mpi/linkage.h"

#include <unistd.h>

#include <sstream>
#include <string>

#include "mpi/elf.h"
#include "mpi/python.h"
#include "support/failure.h"

namespace carillon::cli {
namespace {

constexpr int kMaxScripts = 4;  // a script may be interpreted by a script, but not for ever

// What the loader would load, e.g. {libmpi.so.40, /usr/lib/libmpi.so.40}; no path: not found.
struct Loaded {
  std::string soname;
  Path path;
};

// "	libmpi.so.40 => /usr/lib/libmpi.so.40 (0x...)", "libx.so => not found", "/lib/ld.so
// (0x...)".
Loaded parse_line(const std::string& line) {
  std::istringstream words(line);
  Loaded loaded;
  std::string arrow, path;
  words >> loaded.soname >> arrow >> path;
  if (arrow == "=>" && path.starts_with('/')) loaded.path = path;
  loaded.soname = Path(loaded.soname).filename();
  return loaded;
}

struct LoaderAnswer {
  std::vector<Loaded> list;
  int status = 0;         // else it cannot load the file at all
  std::string last_line;  // the reason, then
};

// The loader's own answer, so that RPATH, LD_LIBRARY_PATH, its cache and the rest count as they
// will when the program runs.
LoaderAnswer ask_loader(const std::string& loader, const Path& file) {
  RunOptions options;
  options.environment = {{"LD_PRELOAD", std::nullopt}, {"LD_TRACE_LOADED_OBJECTS", "1"}};
  options.join_stderr = true;
  LoaderAnswer answer;
  options.line = [&](std::string_view line) {
    answer.last_line = line;
    answer.list.push_back(parse_line(answer.last_line));
  };
  answer.status = run_program({loader, file.string()}, options).status;
  return answer;
}

std::optional<Linkage> mpi_among(const std::vector<Loaded>& list, const Path& file) {
  for (const Loaded& loaded : list) {
    const std::optional<Abi> abi = abi_of_soname(loaded.soname);
    if (!abi) continue;
    if (loaded.path.empty()) {
      fail(
          "{} needs {}, which the loader does not find; add its folder to LD_LIBRARY_PATH, or "
          "load the module of that MPI",
          file.string(), loaded.soname);
    }
    return Linkage{*abi, loaded.path};
  }
  for (const Loaded& loaded : list) {
    if (loaded.soname.starts_with("libmpi.so.") || loaded.soname.starts_with("libmpich.so.")) {
      fail(
          "{} is linked with {}, an MPI that carillon has no interposer for; there are ones for "
          "Open MPI 3 and later, the MPICH ABI and the MPI 5 ABI",
          file.string(), loaded.soname);
    }
  }
  return std::nullopt;
}

// Of a shared library, e.g. an extension module of Python.
std::optional<Linkage> mpi_of_library(const Path& library) {
  const ProgramFile own = read_program_file("/proc/self/exe");
  return mpi_among(ask_loader(own.loader, library).list, library);
}

bool is_python(const std::string& name) {
  const std::string base = Path(name).filename();
  return base.starts_with("python") &&
         base.find_first_not_of("0123456789.", 6) == std::string::npos;
}

Linkage of_python(const std::string& interpreter) {
  for (const Path& file : mpi4py_files(interpreter)) {
    if (auto found = mpi_of_library(file)) return *found;
  }
  for (const Path& library : mpi4py_libraries(interpreter)) {
    if (const auto abi = abi_of_soname(library.filename().string())) return {*abi, library};
  }
  fail(
      "{} has no mpi4py that loads an MPI; install mpi4py for it, or, if the program uses MPI in "
      "another way, say which with --mpi openmpi, mpich or mpiabi",
      interpreter);
}

Linkage of_elf(const Path& file, const ProgramFile& program) {
  if (!program.dynamic || program.loader.empty()) {
    fail(
        "{} is statically linked, so no library can be put before its MPI; link it with shared "
        "libraries, e.g. without -static",
        file.string());
  }
  if (!std::filesystem::exists(program.loader)) {
    throw Failure(fmt::format("{} is to be loaded by {}, which is not there; build it on this "
                              "system, or install that one's C library",
                              file.string(), program.loader),
                  kNotExecutable);
  }
  const LoaderAnswer answer = ask_loader(program.loader, file);
  if (auto found = mpi_among(answer.list, file)) return *found;
  if (answer.status != 0) {
    throw Failure(
        fmt::format("{} cannot be loaded: {} {}", file.string(), program.loader,
                    answer.last_line.empty() ? fmt::format("ends with status {}", answer.status)
                                             : "says: " + answer.last_line),
        kNotExecutable);
  }
  fail(
      "{} is not linked with MPI; if it loads MPI later or starts MPI programs, say which with "
      "--mpi openmpi, mpich or mpiabi",
      file.string());
}

// The words after #! without env and its options and assignments.
std::string interpreter_of(const Arguments& words, const Path& script) {
  if (words.empty()) fail("{} has an empty #! line; name its interpreter there", script.string());
  std::size_t i = 0;
  if (Path(words[0]).filename() == "env") {
    i = 1;
    while (i < words.size() &&
           (words[i].starts_with('-') || words[i].find('=') != std::string::npos)) {
      ++i;
    }
    if (i == words.size()) return words[0];
  }
  return words[i];
}

// As require_program, of a script's #! line.
Path require_interpreter(const std::string& name, const std::string& script) {
  try {
    return require_program(name);
  } catch (const Failure& failure) {
    throw Failure(fmt::format("{}: its #! line names {}: {}", script, name, failure.what()),
                  failure.exit_status);
  }
}

}  // namespace

Path require_program(const std::string& name) {
  const std::optional<Path> file = find_in_path(name);
  if (!file) {
    std::error_code ignored;
    const bool here = name.find('/') == std::string::npos && !name.empty() &&
                      std::filesystem::exists(name, ignored);
    throw Failure(
        here ? fmt::format("{0} is not on PATH, but here: did you mean ./{0}?", name)
             : fmt::format("there is no program {}; check the path", name.empty() ? "\"\"" : name),
        kNotFound);
  }
  if (std::filesystem::is_directory(*file)) {
    throw Failure(fmt::format("{} is a folder; name a program in it", file->string()),
                  kNotExecutable);
  }
  if (!std::filesystem::is_regular_file(*file)) {
    throw Failure(fmt::format("{} is no file that can be run", file->string()), kNotExecutable);
  }
  if (access(file->c_str(), X_OK) != 0) {
    throw Failure(fmt::format("{0} may not be executed; chmod +x {0}, or name its interpreter, "
                              "e.g. python3 {0}",
                              file->string()),
                  kNotExecutable);
  }
  return *file;
}

Linkage find_linkage(const Arguments& program) {
  std::string name = program.at(0);
  std::string script;  // that names it as its interpreter
  for (int depth = 0; depth < kMaxScripts; ++depth) {
    const Path file = script.empty() ? require_program(name) : require_interpreter(name, script);
    if (is_python(name)) return of_python(file.string());
    const ProgramFile content = read_program_file(file);
    switch (content.kind) {
      case ProgramFile::Kind::kElf: return of_elf(file, content);
      case ProgramFile::Kind::kForeignElf:
        throw Failure(
            fmt::format(
                "{} is for another kind of processor than carillon; build both for the same",
                file.string()),
            kNotExecutable);
      case ProgramFile::Kind::kDamagedElf:
        throw Failure(fmt::format("{} is no whole program: it is damaged, or was not linked; build "
                                  "or copy it again",
                                  file.string()),
                      kNotExecutable);
      case ProgramFile::Kind::kOther:
        fail("{} is neither a program nor a script with a #! line", file.string());
      case ProgramFile::Kind::kScript: break;
    }
    name = interpreter_of(content.interpreter, file);
    script = file.string();
    if (!is_python(name)) {
      const ProgramFile next = read_program_file(require_interpreter(name, script));
      if (next.kind == ProgramFile::Kind::kElf) {
        fail(
            "{} is a script for {}: which MPI the programs in it use cannot be seen; say so with "
            "--mpi openmpi, mpich or mpiabi",
            file.string(), name);
      }
    }
  }
  fail("{} is a script for a script for a script...; name the last interpreter", program[0]);
}

Linkage find_linkage(const Arguments& program, const std::string& mpi) {
  if (mpi.empty()) return find_linkage(program);
  const Abi abi = abi_from_name(mpi);
  try {
    if (Linkage found = find_linkage(program); found.abi == abi) return found;
  } catch (const Failure&) {  // that is why the user says it
  }
  return {abi, {}};
}

}  // namespace carillon::cli
