// SPDX-License-Identifier: Apache-2.0
//
// For tests of the shared heap: where it is, bytes that are known, and processes that end in time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>

#include "support/known_bytes.h"

namespace heap_test {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Region {
  const char* first = nullptr;
  std::size_t bytes = 0;
  int fd = -1;  // there is none
};
/// What others of the node could map.
Region region();
bool in_heap(const void* memory);

using known_bytes::fill;
using known_bytes::holds;

/// The exit status of a child of fork in which this is called; -1: it was ended, or took so long.
int status_of(const std::function<int()>& child, int patience_s = 20);
int status_of(pid_t child);

/// A line of /proc/self/status, in KiB.
std::size_t status_kib(const char* name);

}  // namespace heap_test
