// SPDX-License-Identifier: Apache-2.0
//
// Data files that are part of the program (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace carillon {

struct EmbeddedFile {
  std::string_view name;  ///< without folder and ending
  std::string_view text;
};

/// machines/*.toml
std::span<const EmbeddedFile> machine_files();
/// papers/*.toml
std::span<const EmbeddedFile> paper_files();

}  // namespace carillon
