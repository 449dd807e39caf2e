// SPDX-License-Identifier: Apache-2.0
//
// Log lines to stderr. The function that detects something unusual logs it, once; nothing is ever
// written to stdout by the library.
#pragma once

#include <string_view>

namespace carillon {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// "off", "error", "warning", "info", "debug"; anything else counts as warning.
void set_log_level(std::string_view level);
bool log_enabled(LogLevel level);
void log(LogLevel level, std::string_view text);

}  // namespace carillon
