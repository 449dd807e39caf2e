// SPDX-License-Identifier: Apache-2.0
#include "base/process_mark.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"

namespace carillon {
namespace {

struct Stat {
  char state = 0;
  std::uint64_t started = 0;
};

// proc(5): the name, in parentheses, may hold anything; after it come the state, which is field 3,
// and with field 22 the time of the start.
std::optional<Stat> parse(std::string_view text) {
  constexpr int kBetween = 22 - 3;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return {};
  text.remove_prefix(name_end + 2);
  Stat stat{.state = text.front()};
  for (int i = 0; i < kBetween; ++i) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  const auto end = std::from_chars(text.data(), text.data() + text.size(), stat.started);
  if (end.ec != std::errc()) return {};
  return stat;
}

std::optional<Stat> read_stat(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::array<char, 1024> text;
  const ssize_t length = read(fd.get(), text.data(), text.size());
  if (length <= 0) return {};
  return parse({text.data(), static_cast<std::size_t>(length)});
}

std::uint64_t own_pids() {
  struct stat info = {};
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

}  // namespace

ProcessMark own_mark() {
  const std::optional<Stat> stat = read_stat("/proc/self/stat");
  if (!stat) return {};
  return {own_pids(), stat->started};
}

ProcessLife look_at_process(pid_t pid, const ProcessMark& mark) {
  if (mark.pids == 0 || mark.pids != own_pids()) return ProcessLife::kUnknown;
  if (kill(pid, 0) != 0 && errno == ESRCH) return ProcessLife::kEnded;
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const std::optional<Stat> stat = read_stat(path.data());
  if (!stat) return ProcessLife::kUnknown;
  const bool ended = stat->state == 'Z' || stat->state == 'X' || stat->state == 'x';
  return ended || stat->started != mark.started ? ProcessLife::kEnded : ProcessLife::kLives;
}

}  // namespace carillon
