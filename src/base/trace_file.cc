// SPDX-License-Identifier: Apache-2.0
#include "base/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace carillon {
namespace {

constexpr std::string_view kEmpty = "[]\n";
constexpr std::string_view kEnd = "\n]\n";
static_assert(kEmpty.size() == kEnd.size());  // what the first events replace, and later ones

Status failure(const std::string& file, const char* what) {
  return {Code::kSystem, "the trace " + file + " cannot be " + what + ": " + std::strerror(errno) +
                             "; choose another file"};
}

bool write_all(int fd, std::string_view text, off_t at) {
  while (!text.empty()) {
    const ssize_t written = pwrite(fd, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
  return true;
}

}  // namespace

Status empty_trace_file(const std::string& file) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) return failure(file, "opened");
  if (!write_all(fd.get(), kEmpty, 0)) return failure(file, "written");
  return {};
}

Status add_to_trace_file(const std::string& file, std::string_view events) {
  const UniqueFd fd(open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) return failure(file, "opened");
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return failure(file, "locked");
  }
  const off_t size = lseek(fd.get(), 0, SEEK_END);
  const auto end = static_cast<off_t>(kEnd.size());
  const bool is_first = size <= end;
  const std::string text =
      std::string(is_first ? "[\n" : ",\n") + std::string(events) + std::string(kEnd);
  if (!write_all(fd.get(), text, is_first ? 0 : size - end)) return failure(file, "written");
  return {};
}

}  // namespace carillon
