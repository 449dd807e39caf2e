// SPDX-License-Identifier: Apache-2.0
#include "support/stats.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/whole_file.h"
#include "support/failure.h"
#include "support/json.h"

namespace carillon::cli {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

StatsFile::StatsFile() {
  std::error_code ignored;
  Path parent = std::filesystem::temp_directory_path(ignored);
  if (parent.empty()) parent = "/tmp";
  std::string name = parent / "carillon-stats-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    fail("cannot make a folder in {}: {}; set TMPDIR to one that can be written", parent.string(),
         std::strerror(errno));
  }
  folder_ = name;
}

StatsFile::~StatsFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::int64_t StatsFile::taken(const std::string& collective) const {
  const Result<std::string> file = read_whole_file(folder_ / "stats.0.json");
  const Json json = file.ok() ? Json::parse(file.value()) : Json();
  if (!json.is_object() || !json.contains("collectives")) return 0;
  for (const Json& row : json["collectives"]) {
    if (lower(row["collective"].text()) == collective) return row["taken"].integer();
  }
  return 0;
}

}  // namespace carillon::cli
