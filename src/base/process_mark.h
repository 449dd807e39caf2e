// SPDX-License-Identifier: Apache-2.0
//
// What tells a process of this machine from all others, before and after it, that have its pid: for
// who wants to know whether it lives.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace carillon {

/// As it stands in shared memory.
struct ProcessMark {
  std::uint64_t pids = 0;     ///< the namespace that its pid is of; 0: not known
  std::uint64_t started = 0;  ///< clock ticks after the machine
};

/// Of the calling process. Nothing is known where there is no /proc.
ProcessMark own_mark();

enum class ProcessLife : std::uint8_t {
  kLives,
  kEnded,    ///< also one that nobody has waited for yet
  kUnknown,  ///< it is of another namespace, or cannot be looked at
};

/// Any thread may ask. Opens files in /proc; allocates nothing.
ProcessLife look_at_process(pid_t pid, const ProcessMark& mark);

}  // namespace carillon
