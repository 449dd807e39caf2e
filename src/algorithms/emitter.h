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
    Status status = build(algorithm, call);
    if (!status.ok()) return status;
    return builder_->built();
  }
  /// The same into a schedule that was another one, in its memory.
  Status emit(const Algorithm& algorithm, const Call& call, Schedule* schedule) {
    Status status = build(algorithm, call);
    if (status.ok()) *schedule = builder_->built();
    return status;
  }

 private:
  Status build(const Algorithm& algorithm, const Call& call) {
    const Result<Call> prepared = prepare(algorithm, call);
    if (!prepared.ok()) return prepared.status();
    if (builder_) {
      builder_->restart(prepared.value());
    } else {
      builder_.emplace(prepared.value());
    }
    emit_prepared(algorithm, prepared.value(), *builder_);
    return builder_->end();
  }

  std::optional<Builder> builder_;
};

}  // namespace carillon
