// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/failure.h"

namespace carillon::cli {
namespace {

std::vector<char*> pointers(const Arguments& command) {
  std::vector<char*> list;
  list.reserve(command.size() + 1);
  for (const std::string& word : command) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void run_child(const Arguments& command, const RunOptions& options, int out) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  if (options.drop_stderr) dup2(null, STDERR_FILENO);
  if (options.join_stderr) dup2(out, STDERR_FILENO);
  for (const auto& [name, value] : options.environment) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  execvp(command[0].c_str(), pointers(command).data());
  _exit(kNotFound);
}

// Hands the whole lines at the front of `pending` to the listener.
void hand_out_lines(std::string& pending, const RunOptions& options) {
  for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
    if (options.line) options.line(std::string_view(pending).substr(0, end));
    pending.erase(0, end + 1);
  }
}

}  // namespace

std::optional<Path> find_in_path(std::string_view name) {
  std::error_code ignored;
  if (name.find('/') != std::string_view::npos) {
    if (std::filesystem::exists(name, ignored)) return Path(name);
    return std::nullopt;
  }
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    Path file = Path(folder.empty() ? "." : folder) / name;
    if (access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, ignored)) {
      return file;
    }
  }
  return std::nullopt;
}

Captured run_program(const Arguments& command, const RunOptions& options) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) fail("cannot start {}: {}", command[0], std::strerror(errno));
  if (child == 0) run_child(command, options, ends[1]);
  close(ends[1]);
  Captured captured;
  std::string pending;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t bytes = read(ends[0], buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    captured.out.append(buffer.data(), static_cast<std::size_t>(bytes));
    pending.append(buffer.data(), static_cast<std::size_t>(bytes));
    hand_out_lines(pending, options);
  }
  if (!pending.empty() && options.line) options.line(pending);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  captured.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return captured;
}

void become(const Arguments& command) {
  execvp(command[0].c_str(), pointers(command).data());
  const int error = errno;
  throw Failure(fmt::format("cannot run {}: {}", command[0], std::strerror(error)),
                error == ENOENT ? kNotFound : kNotExecutable);
}

Arguments own_arguments() {
  std::ifstream file("/proc/self/cmdline");
  Arguments arguments;
  for (std::string word; std::getline(file, word, '\0');) arguments.push_back(std::move(word));
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return arguments;
}

Path own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

Path library_folder() {
#ifdef CARILLON_LIBDIR
  Path installed = own_path().parent_path().parent_path() / CARILLON_LIBDIR;
  std::error_code ignored;
  if (std::filesystem::exists(installed / "libcarillon.so", ignored)) return installed;
#endif
  return own_path().parent_path().parent_path() / "lib";
}

std::string shell_words(const Arguments& command) {
  std::string text;
  for (const std::string& word : command) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`*?;&|<>(){}[]#~!") == std::string::npos;
    if (!text.empty()) text += ' ';
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

}  // namespace carillon::cli
