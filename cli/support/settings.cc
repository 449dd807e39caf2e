// SPDX-License-Identifier: Apache-2.0
#include "support/settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "support/failure.h"

namespace carillon::cli {
namespace {

std::string value_or(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value != '\0' ? value : fallback;
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

void require_interposer_settings() {
  const std::string value = value_or("CARILLON", "on");
  constexpr std::array<std::string_view, 8> kValues = {"on",  "1", "yes", "true",
                                                       "off", "0", "no",  "false"};
  if (std::find(kValues.begin(), kValues.end(), value) == kValues.end()) {
    fail("CARILLON={} is not a setting; use on or off", value);
  }
}

}  // namespace carillon::cli
