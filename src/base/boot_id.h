// SPDX-License-Identifier: Apache-2.0
//
// What tells a machine from others for as long as it runs. Containers of one machine see the same;
// a node of a virtual cluster one of its own.
#pragma once

#include <fstream>
#include <string>

namespace carillon {

inline constexpr const char* kBootIdFile = "/proc/sys/kernel/random/boot_id";

/// Empty if the system does not tell.
inline std::string boot_id() {
  std::string text;
  std::getline(std::ifstream(kBootIdFile), text);
  return text;
}

}  // namespace carillon
