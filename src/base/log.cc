// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>

namespace carillon {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kWarning};

spdlog::level::level_enum spd_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

// Made at the first line that is really written: start-up pays nothing for it.
spdlog::logger& logger() {
  static const auto kLogger = [] {
    auto made = std::make_shared<spdlog::logger>("carillon",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("carillon[%P] %l: %v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *kLogger;
}

}  // namespace

void set_log_level(std::string_view level) {
  LogLevel chosen = LogLevel::kWarning;
  if (level == "off") chosen = LogLevel::kOff;
  if (level == "error") chosen = LogLevel::kError;
  if (level == "info") chosen = LogLevel::kInfo;
  if (level == "debug") chosen = LogLevel::kDebug;
  g_level.store(chosen, std::memory_order_relaxed);
}

bool log_enabled(LogLevel level) { return level >= g_level.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view text) {
  if (log_enabled(level)) logger().log(spd_level(level), text);
}

}  // namespace carillon
