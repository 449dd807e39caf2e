// SPDX-License-Identifier: Apache-2.0
#include "base/whole_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace carillon {

Result<std::string> read_whole_file(const std::string& path) {
  const auto cannot = [&path](const std::string& why) {
    return Status(Code::kInvalidArgument, "cannot read " + path + ": " + why);
  };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return cannot("it is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot(std::system_category().message(errno));
  try {
    return std::string{std::istreambuf_iterator<char>(file), {}};
  } catch (const std::ios_base::failure& failure) {  // the system refuses to read it
    return cannot(failure.code().message());
  }
}

}  // namespace carillon
