// SPDX-License-Identifier: Apache-2.0
#include "transport/aggregate/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/unique_fd.h"

namespace carillon::aggregate {

Result<SipKey> read_key_file(const std::string& file, const std::string& setting) {
  const auto bad = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  const std::string how = "make one by carillon switchd --new-key FILE";
  if (file.empty()) {
    return bad(setting + " is needed: a switch takes jobs from who has its key; " + how);
  }
  const UniqueFd in(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!in.valid() || fstat(in.get(), &info) != 0) {
    return bad(file + ": " + std::strerror(errno) + "; " + how);
  }
  if (S_ISDIR(info.st_mode)) return bad(file + " is a folder, and no key; " + how);
  if ((info.st_mode & 077) != 0) {
    return bad("others can read or write " + file + ", and the key is in it; chmod 600 " + file);
  }
  std::array<char, 64> text{};
  const ssize_t bytes = read(in.get(), text.data(), text.size());
  const bool ended = bytes == 32 || (bytes == 33 && text[32] == '\n');
  SipKey key;
  const auto high = std::from_chars(text.data(), text.data() + 16, key.high, 16);
  const auto low = std::from_chars(text.data() + 16, text.data() + 32, key.low, 16);
  if (!ended || high.ptr != text.data() + 16 || low.ptr != text.data() + 32) {
    return bad(file + " holds no key, which is 32 hexadecimal digits; " + how);
  }
  return key;
}

}  // namespace carillon::aggregate
