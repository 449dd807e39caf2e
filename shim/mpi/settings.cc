// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace carillon::shim {
namespace {

std::string_view value_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), value) != words.end();
}

// Empty, or why the value is none.
std::string read_switch(const char* name, bool* on) {
  const std::string_view value = value_of(name);
  if (is_one_of(value, {"off", "0", "no", "false"})) {
    *on = false;
  } else if (is_one_of(value, {"on", "1", "yes", "true"})) {
    *on = true;
  } else if (!value.empty()) {
    return std::string(name) + "=" + std::string(value) + " is not a setting; use on or off";
  }
  return {};
}

}  // namespace

Settings read_settings() {
  Settings settings;
  settings.error = read_switch("CARILLON", &settings.on);
  if (settings.error.empty()) settings.error = read_switch("CARILLON_CHECK", &settings.check);
  if (settings.error.empty()) settings.error = read_switch("CARILLON_MERGED", &settings.joins);
  const std::string_view stats = value_of("CARILLON_STATS");
  if (!is_one_of(stats, {"", "off", "0", "no", "false"})) {
    settings.stats = is_one_of(stats, {"on", "1", "yes", "true"}) ? "1" : std::string(stats);
  }
  settings.record = value_of("CARILLON_RECORD");
  const std::string timeout(value_of("CARILLON_JOIN_TIMEOUT_S"));
  if (!timeout.empty()) {
    char* end = nullptr;
    const long seconds = std::strtol(timeout.c_str(), &end, 10);
    if (*end == '\0' && seconds > 0 && seconds < 1000000) {
      settings.join_timeout_s = static_cast<int>(seconds);
    }  // else the library says so
  }
  settings.warn_after_s = std::min(settings.warn_after_s, settings.join_timeout_s);
  return settings;
}

}  // namespace carillon::shim
