// SPDX-License-Identifier: Apache-2.0
//
// Other processes of a test: that they have ended; their end while they sleep.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/job.h"

namespace carillon::test {

/// The processes of all members, in their order.
inline std::vector<pid_t> tell_process(Meeting& meeting, int rank) {
  const crl_oob_t oob = meeting.oob(rank);
  const pid_t mine = getpid();
  std::vector<pid_t> all(static_cast<std::size_t>(oob.size));
  void* request = nullptr;
  EXPECT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), sizeof mine, &request), 0);
  while (oob.allgather_test(oob.arg, request) == 1) sched_yield();
  return all;
}

/// A process that is there, and has not been waited for when wait_for_end() is called.
class OtherProcess {
 public:
  explicit OtherProcess(pid_t pid)
      : pid_(pid), handle_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
    EXPECT_TRUE(handle_.valid());
  }
  /// Returns when all its threads have ended, or after so long. Whether they have.
  [[nodiscard]] bool wait_for_end(int most_ms = -1) const {
    pollfd ended{handle_.get(), POLLIN, 0};
    int count = 0;
    while ((count = poll(&ended, 1, most_ms)) < 0 && errno == EINTR) {
    }
    return count > 0;
  }
  /// When its first thread sleeps.
  void kill_asleep() const {
    for (std::string line, state; state != "S" && state != "Z"; sched_yield()) {
      std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
      std::getline(file, line);
      const std::size_t name_end = line.rfind(')');
      state = name_end == line.npos ? "Z" : line.substr(name_end + 2, 1);
    }
    kill();
  }
  void kill() const { EXPECT_EQ(::kill(pid_, SIGKILL), 0); }

 private:
  pid_t pid_;
  UniqueFd handle_;
};

}  // namespace carillon::test
