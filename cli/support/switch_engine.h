// SPDX-License-Identifier: Apache-2.0
//
// What does the work of a switch, as options name it.
#pragma once

#include <string>

#include "support/failure.h"

namespace carillon::cli {

inline constexpr const char* kReferenceEngine = "reference";
inline constexpr const char* kRtlEngine = "rtl";

/// Fails if this build has no such engine.
inline void require_engine([[maybe_unused]] const std::string& name) {
#ifndef CARILLON_WITH_SWITCH_RTL
  if (name == kRtlEngine) {
    fail("--engine {} is not part of this build: it was made without Verilator", name);
  }
#endif
}

}  // namespace carillon::cli
