// SPDX-License-Identifier: Apache-2.0
//
// Emitter: emit (registry.h) for who does so many times, in the memory of the time before.
#pragma once

#include <optional>

#include "algorithms/registry.h"
#include "schedule/builder.h"

namespace carillon {

class Emitter {
 public:
  /// What carillon::emit says.
  Result<Schedule> emit(const Algorithm& algorithm, const Call& call) {
    const Result<Call> prepared = prepare(algorithm, call);
    if (!prepared.ok()) return prepared.status();
    if (builder_) {
      builder_->restart(prepared.value());
    } else {
      builder_.emplace(prepared.value());
    }
    emit_prepared(algorithm, prepared.value(), *builder_);
    if (Status status = builder_->end(); !status.ok()) return status;
    return builder_->built();
  }

 private:
  std::optional<Builder> builder_;
};

}  // namespace carillon
