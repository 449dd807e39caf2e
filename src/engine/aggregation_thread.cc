// SPDX-License-Identifier: Apache-2.0
//
// The thread that looks after a team's group while the program is elsewhere.
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <system_error>

#include "engine/aggregation.h"

namespace carillon {
namespace {

constexpr int kLookMs = 100;                        // at a program that is elsewhere:
constexpr std::int64_t kElsewhereNs = 100'000'000;  // it has made no progress for so long

}  // namespace

// It takes no signals: those are the program's.
void TeamAggregation::start_thread() {
  end_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!end_.valid()) return;  // then the program has to make progress itself
  moved_ns_ = now_ns();
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  try {
    thread_ = std::thread([this] { look_after(); });
  } catch (const std::system_error&) {  // the same
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void TeamAggregation::stop_thread() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!write(end_.get(), &one, sizeof one);
  thread_.join();
}

void TeamAggregation::look_after() {
  std::array<pollfd, 2> waits = {pollfd{.fd = end_.get(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = port_->descriptor(), .events = POLLIN, .revents = 0}};
  int most_ms = kLookMs;
  bool looks = false;  // at the port, too: others need this host
  for (;;) {
    if (poll(waits.data(), looks ? 2 : 1, most_ms) > 0 && waits[0].revents != 0) return;
    most_ms = look_now();
    looks = most_ms < kLookMs;
  }
}

// What is to be done if the program has not done it lately. In how many milliseconds to look again.
int TeamAggregation::look_now() {
  constexpr int kSoonMs = 5;
  const std::lock_guard lock(mutex_);
  if (now_ns() - moved_ns_ < kElsewhereNs) return kLookMs;
  move_port();
  return member_->fall_back_reason().ok() ? kLookMs : kSoonMs;
}

}  // namespace carillon
