// SPDX-License-Identifier: Apache-2.0
//
// Status and Result: how every fallible function of the library answers.
//
// An ok Status is one null pointer, so that returning one costs nothing. The function that
// detects an error writes the message (what happened, where, what to do); callers pass it on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace carillon {

/// The reasons a call can fail. Values are those of crl_status_t (carillon.h).
enum class Code : int {
  kOk = 0,
  kInProgress = 1,
  kInvalidArgument = -1,
  kUnsupported = -2,
  kNoMemory = -3,
  kPeerDead = -4,
  kTimeout = -5,
  kMismatch = -6,  // ranks called with arguments that do not fit together
  kSystem = -7,    // the operating system refused something
  kInternal = -8,  // a defect of carillon itself
};

/// A short English name of the code, e.g. "invalid argument".
std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  [[nodiscard]] bool ok() const { return error_ == nullptr; }
  [[nodiscard]] Code code() const { return ok() ? Code::kOk : error_->code; }
  /// Empty when ok.
  [[nodiscard]] std::string_view message() const {
    return ok() ? std::string_view() : std::string_view(error_->message);
  }
  /// "invalid argument: ..." for a person to read; "ok" when ok.
  [[nodiscard]] std::string to_string() const;

 private:
  struct Error {
    Code code;
    std::string message;
  };
  std::shared_ptr<const Error> error_;  // shared: a failed team answers many requests with it
};

/// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] T& value() { return *value_; }
  [[nodiscard]] const T& value() const { return *value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace carillon
