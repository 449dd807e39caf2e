// SPDX-License-Identifier: Apache-2.0
//
// Other programs: finding them, running them, becoming them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::cli {

using Path = std::filesystem::path;
using Arguments = std::vector<std::string>;
/// Variables to set (or, with no value, to unset) in a child.
using Environment = std::vector<std::pair<std::string, std::optional<std::string>>>;

/// The file a shell would run for this word, or nothing. Not checked: whether it can be run.
std::optional<Path> find_in_path(std::string_view name);

struct Captured {
  int status = 0;   ///< exit status; 128 + signal if it was killed
  std::string out;  ///< its stdout
};

/// Runs a program. `line` gets each line of its stdout as it comes; stderr passes through, is
/// dropped, or is a part of stdout. Its stdin is empty.
struct RunOptions {
  std::function<void(std::string_view)> line = {};
  Environment environment = {};
  bool drop_stderr = false;
  bool join_stderr = false;  ///< to its stdout
};
Captured run_program(const Arguments& command, const RunOptions& options = {});

/// Replaces this process; fails if that is not possible.
[[noreturn]] void become(const Arguments& command);

/// This very program, and the folder of its libraries (in the build tree and when installed).
Path own_path();
/// Its arguments, as it was started with.
Arguments own_arguments();
Path library_folder();

/// "a b 'c d'", to be pasted into a shell.
std::string shell_words(const Arguments& command);

}  // namespace carillon::cli
