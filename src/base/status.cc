// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

namespace carillon {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInProgress: return "in progress";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kUnsupported: return "unsupported";
    case Code::kNoMemory: return "out of memory";
    case Code::kPeerDead: return "peer dead";
    case Code::kTimeout: return "timeout";
    case Code::kMismatch: return "arguments differ between ranks";
    case Code::kSystem: return "system error";
    case Code::kInternal: return "internal error";
  }
  return "unknown status";
}

Status::Status(Code code, std::string message)
    : error_(std::make_shared<const Error>(Error{code, std::move(message)})) {}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(code_name(error_->code)) + ": " + error_->message;
}

}  // namespace carillon
