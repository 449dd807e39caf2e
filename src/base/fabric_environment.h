// SPDX-License-Identifier: Apache-2.0
//
// What libfabric must find in the environment, by whomever in the process it is used first: that is
// when it reads it, once.
#pragma once

#include <array>
#include <cstdlib>
#include <string_view>

namespace carillon {

inline constexpr std::array kFabricStaging = {"FI_TCP_STAGING_SBUF_SIZE",
                                              "FI_NET_STAGING_SBUF_SIZE"};

/// Its provider for TCP calls a put done that it has copied to a buffer of its own, because the
/// kernel's is full. From there it goes on only while this process makes progress, and a rank that
/// has left the collective makes none: others wait. Without that buffer, done means that the kernel
/// has it. To be set where no other thread uses the environment.
inline bool is_fabric_environment_set() {
  for (const char* const size : kFabricStaging) {
    const char* const value = std::getenv(size);  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || std::string_view(value) != "0") return false;
  }
  return true;
}
inline void set_fabric_environment() {
  if (is_fabric_environment_set()) return;
  for (const char* const size : kFabricStaging) setenv(size, "0", 1);
}

}  // namespace carillon
