// SPDX-License-Identifier: Apache-2.0
//
// What a program file is: ELF (for this machine, with a loader or without), a script, or neither.
#pragma once

#include <string>

#include "support/process.h"

namespace carillon::cli {

struct ProgramFile {
  /// kDamagedElf: its headers lead to bytes that are not there, or it is not linked.
  enum class Kind { kElf, kForeignElf, kDamagedElf, kScript, kOther };
  Kind kind = Kind::kOther;
  bool dynamic = false;   ///< ELF: has a dynamic section
  std::string loader;     ///< ELF: its interpreter, e.g. /lib64/ld-linux-x86-64.so.2
  Arguments interpreter;  ///< script: the words of its first line after #!
};

/// Fails if the file cannot be read.
ProgramFile read_program_file(const Path& path);

}  // namespace carillon::cli
