// SPDX-License-Identifier: Apache-2.0
//
// What a loop that polls does between two polls.
#pragma once

namespace carillon {

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace carillon
