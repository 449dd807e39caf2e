// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand ends when it cannot go on: one line that says what is wrong and what to do.
// main() prints it.
#pragma once

#include <fmt/format.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/status.h"

namespace carillon::cli {

struct Failure : std::runtime_error {
  explicit Failure(const std::string& message, int status = 1)
      : std::runtime_error(message), exit_status(status) {}
  int exit_status;
};

/// Exit statuses other than 1; the last two are those of the shell and env(1).
inline constexpr int kWrongUse = 2;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(fmt::format(format, std::forward<Args>(args)...));
}

/// Of a std::bad_alloc.
inline constexpr const char* kNoMemory = "there is not enough memory for this; ask for less of it";

/// Why body() could not go on; nothing if it could.
template <typename Body>
std::optional<Failure> failure_of(Body body) {
  try {
    body();
  } catch (const Failure& failure) {
    return failure;
  } catch (const std::bad_alloc&) {
    return Failure(kNoMemory);
  }
  return std::nullopt;
}

/// The value, or the end of the command with the status' message.
template <typename T>
T value_or_fail(Result<T> result) {
  if (!result.ok()) throw Failure(std::string(result.status().message()));
  return std::move(result.value());
}

}  // namespace carillon::cli
