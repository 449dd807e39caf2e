// SPDX-License-Identifier: Apache-2.0
#include "support/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "support/failure.h"
#include "transport/aggregate/text.h"

namespace carillon::cli {
namespace {

std::string value_or(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value != '\0' ? value : fallback;
}

// A file that is not there is not made: the program may end before it has anything to write.
void require_writable(const char* name, const std::string& file) {
  if (file.empty()) return;
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) {
    fail("{}={} is a folder; name a file in it", name, file);
  }
  std::filesystem::path where = file;
  int right = W_OK;
  // What is in the way of the file (ENOTDIR, ENAMETOOLONG, ...) is the file's own error.
  if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) {
    if (std::filesystem::is_symlink(where, none)) {
      where = where.parent_path() / std::filesystem::read_symlink(where, none);
    }
    where = where.parent_path();
    if (where.empty()) where = ".";
    right = W_OK | X_OK;
  }
  if (access(where.c_str(), right) != 0) {
    fail("{}={} cannot be written: {}: {}; choose another file", name, file, where.string(),
         std::strerror(errno));
  }
}

void require_readable(const char* name, const std::string& file) {
  if (file.empty()) return;
  std::error_code none;
  if (std::filesystem::is_directory(file, none)) fail("{}={} is a folder; name a file", name, file);
  if (access(file.c_str(), R_OK) != 0) {
    fail("{}={} cannot be read: {}; correct or unset it", name, file, std::strerror(errno));
  }
}

}  // namespace

std::vector<Setting> all_settings() {
  const auto table = settings();
  std::vector<Setting> all(table.begin(), table.end());
  const auto add = [&](const char* name, const char* type, const char* fallback,
                       const char* description) {
    const auto known = [&](const Setting& setting) { return setting.name == name; };
    if (std::none_of(all.begin(), all.end(), known)) {
      all.push_back({name, type, fallback, value_or(name, fallback), description});
    }
  };
  add("CARILLON", "on or off", "on",
      "off: the interposer leaves every call to the program's own MPI.");
  add("CARILLON_STATS", "text", "",
      "1: rank 0 says on stderr at the end what the collectives came to; json: as a line of JSON; "
      "otherwise a file's prefix.");
  add("CARILLON_CHECK", "on or off", "off",
      "on: each collective call is compared with those of the other ranks.");
  add("CARILLON_MERGED", "on or off", "off",
      "on: communicators that are merged with processes of other jobs are taken, too; all of these "
      "have carillon, and this setting.");
  add("CARILLON_RECORD", "file", "",
      "Rank 0 writes the program's collectives to it, for carillon sim --program.");
  add("CARILLON_SHARED_HEAP_MIB", "number", "65536",
      "Address space per rank for the blocks that --shared-heap moves.");
  return all;
}

void require_forms(const Config& settings) {
  if (!settings.in_switch.empty()) value_or_fail(aggregate::parse_path(settings.in_switch));
}

void require_interposer_settings() {
  for (const char* const name : {"CARILLON", "CARILLON_CHECK", "CARILLON_MERGED"}) {
    const std::string value = value_or(name, "on");
    constexpr std::array<std::string_view, 8> kValues = {"on",  "1", "yes", "true",
                                                         "off", "0", "no",  "false"};
    if (std::find(kValues.begin(), kValues.end(), value) == kValues.end()) {
      fail("{}={} is not a setting; use on or off", name, value);
    }
  }
  const std::string mib = value_or("CARILLON_SHARED_HEAP_MIB", "0");
  constexpr std::uint64_t kMostMib = 4194304;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(mib.data(), mib.data() + mib.size(), number);
  if (error != std::errc() || end != mib.data() + mib.size() || number > kMostMib) {
    fail("CARILLON_SHARED_HEAP_MIB={} is no number of MiB up to {}; correct or unset it", mib,
         kMostMib);
  }
}

void require_files(const Config& settings, bool first_rank) {
  require_writable("CARILLON_TRACE", settings.trace);
  const std::string stats = value_or("CARILLON_STATS", "off");
  constexpr std::array<std::string_view, 9> kNoFile = {"on", "1",  "yes",   "true", "off",
                                                       "0",  "no", "false", "json"};
  if (std::find(kNoFile.begin(), kNoFile.end(), stats) == kNoFile.end()) {
    require_writable("CARILLON_STATS", stats + ".0.json");  // it is a prefix
  }
  if (!first_rank) return;
  require_writable("CARILLON_RECORD", value_or("CARILLON_RECORD", ""));
  require_readable("CARILLON_SWITCH_KEY", settings.switch_key);
}

}  // namespace carillon::cli
