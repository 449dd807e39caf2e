// SPDX-License-Identifier: Apache-2.0
#include "support/stats.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/failure.h"

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
  std::ifstream file(folder_ / "stats.0.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object()) return 0;
  for (const auto& row : json.value("collectives", nlohmann::json::array())) {
    if (lower(row.value("collective", "")) == collective) return row.value("taken", 0);
  }
  return 0;
}

}  // namespace carillon::cli
