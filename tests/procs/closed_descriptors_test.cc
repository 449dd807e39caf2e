// SPDX-License-Identifier: Apache-2.0
//
// Who lives, where programs close descriptors that they do not know, and with the segment's the
// lock by which others see that their process is there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "transport/shm/segment.h"

namespace carillon::test {
namespace {

// A process that is rank 1 of a node, and what it tells.
class ClosedDescriptors : public testing::Test {
 protected:
  void SetUp() override {
    alarm(60);
    auto made = shm::Segment::create(2, {});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    segment_ = made.value();
    ASSERT_EQ(pipe2(told_, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    for (const int fd : {told_[0], told_[1], ends_[0], ends_[1]}) close(fd);
    alarm(0);
  }
  template <typename Then>
  void start(Then then) {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      if (!segment_->enter(1).ok()) _exit(1);
      then();
      _exit(2);
    }
    close(told_[1]);
    told_[1] = -1;
    char byte = 0;
    // Of exec it tells by closing its end.
    while (read(told_[0], &byte, 1) < 0) {
    }
  }
  // Until it is killed.
  void stay() const {
    char byte = 0;
    if (write(told_[1], "x", 1) != 1) _exit(3);
    while (read(ends_[0], &byte, 1) != 0) {
    }
  }
  void close_segment() const {
    for (int fd = 3; fd < 1024; ++fd) {
      if (fd != told_[1] && fd != ends_[0]) close(fd);
    }
  }
  void end_child() const {
    kill(child_, SIGKILL);
    siginfo_t info = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child_), &info, WEXITED | WNOWAIT), 0);
  }

  std::shared_ptr<shm::Segment> segment_;
  int told_[2] = {-1, -1}, ends_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(ClosedDescriptors, OfWhoLives) {
  start([&] {
    close_segment();
    stay();
  });
  EXPECT_FALSE(segment_->died(1));
  end_child();
  EXPECT_TRUE(segment_->died(1)) << "nobody has waited for it yet";
  ASSERT_EQ(waitpid(child_, nullptr, 0), child_);
  child_ = -1;
  EXPECT_TRUE(segment_->died(1));
}

// Another file has the number now, and no locks.
TEST_F(ClosedDescriptors, OfWhoLooks) {
  start([&] { stay(); });
  const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(other, 0);
  const int kept = fcntl(segment_->fd(), F_DUPFD_CLOEXEC, 0);
  ASSERT_EQ(dup2(other, segment_->fd()), segment_->fd());
  EXPECT_FALSE(segment_->died(1));
  end_child();
  EXPECT_TRUE(segment_->died(1));
  close(segment_->fd());
  EXPECT_TRUE(segment_->died(1));
  ASSERT_EQ(dup2(kept, segment_->fd()), segment_->fd());
  close(kept);
  close(other);
}

TEST_F(ClosedDescriptors, OfWhoHasBecomeAnotherProgram) {
  start([&] {
    if (dup2(ends_[0], STDIN_FILENO) != STDIN_FILENO) _exit(3);
    execlp("cat", "cat", nullptr);
  });
  EXPECT_EQ(kill(child_, 0), 0);
  EXPECT_TRUE(segment_->died(1));
}

// Its pid is another process's, which has begun at another time.
TEST_F(ClosedDescriptors, OfWhosePidIsAnothers) {
  start([&] {
    close_segment();
    stay();
  });
  ++segment_->state(1).mark.started;
  EXPECT_TRUE(segment_->died(1));
}

}  // namespace
}  // namespace carillon::test
