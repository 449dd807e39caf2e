// SPDX-License-Identifier: Apache-2.0
//
// The size of a file that may be larger than this process's files may be (ulimit -f): the kernel
// would not only refuse it, but end the program by SIGXFSZ.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace carillon {

/// As ftruncate, but for the signal: -1, and errno says why.
inline int size_file(int fd, std::uint64_t bytes) {
  struct rlimit limit = {};
  const bool known = getrlimit(RLIMIT_FSIZE, &limit) == 0;
  if (known && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
    errno = EFBIG;
    return -1;
  }
  return ftruncate(fd, static_cast<off_t>(bytes));
}

}  // namespace carillon
