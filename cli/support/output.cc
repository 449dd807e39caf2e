// SPDX-License-Identifier: Apache-2.0
#include "support/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace carillon::cli {

void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // Of those below none is closed any more, so this is the one.
    const int way = fd == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", way | O_CLOEXEC) < 0) return;
  }
}

int end_output(int status) {
  const bool lost = std::ferror(stdout) != 0;  // earlier, and nobody knows why any more
  const bool written = std::fflush(stdout) == 0;
  if (written && !lost) return status;
  std::fprintf(stderr, "carillon: what it prints cannot be written to stdout%s%s\n",
               written ? "" : ": ", written ? "; is the disk full?" : std::strerror(errno));
  return status == 0 ? 1 : status;
}

}  // namespace carillon::cli
