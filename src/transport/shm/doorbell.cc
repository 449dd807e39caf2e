// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace carillon::shm {
namespace {

// Not there in old kernels and some sandboxes: a wake-up can then be missed, and the sleeper's
// short timeout is what ends its sleep.
void membarrier(int command) { syscall(SYS_membarrier, command, 0, 0); }

timespec duration(int us) {
  return {.tv_sec = us / 1000000, .tv_nsec = static_cast<long>(us % 1000000) * 1000};
}

struct BellAddress {
  sockaddr_un value = {};
  socklen_t length = 0;

  explicit BellAddress(std::uint64_t name) {
    value.sun_family = AF_UNIX;
    char* const path = value.sun_path;  // the first byte stays 0: an abstract name
    const int written = std::snprintf(path + 1, sizeof(value.sun_path) - 1, "carillon.bell.%016llx",
                                      static_cast<unsigned long long>(name));
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    static_cast<std::size_t>(written));
  }
};

void ring(std::uint64_t name) {
  static const int kSocket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const BellAddress address(name);
  const char byte = 0;
  // Full: it rings already.
  (void)sendto(kSocket, &byte, 1, MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address.value),
               address.length);
}

}  // namespace

void register_for_wakeups() { membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

void wake(Segment& segment, int node_rank) {
  RankState& state = segment.state(node_rank);
  // partner: Sleep::Sleep, by way of its membarrier
  if (state.listening.load(std::memory_order_relaxed) != 0) {
    ring(state.bell.load(std::memory_order_relaxed));
  }
  if (state.sleeping.load(std::memory_order_relaxed) == 0) return;
  state.wake_count.fetch_add(1, std::memory_order_release);  // partner: Sleep::sleep (futex)
  syscall(SYS_futex, &state.wake_count, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void wake_own(Segment& segment, int node_rank, const Bell* bell) {
  if (bell == nullptr || bell->own_fd() < 0) return wake(segment, node_rank);
  // partner: Sleep::Sleep, by way of its membarrier
  if (segment.state(node_rank).listening.load(std::memory_order_relaxed) == 0) return;
  const std::uint64_t one = 1;
  (void)!write(bell->own_fd(), &one, sizeof one);  // full: it rings already
}

Bell::Bell(Segment& segment, int node_rank) {
  std::uint64_t name = 0;
  if (getrandom(&name, sizeof name, 0) != sizeof name || name == 0) return;
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const BellAddress address(name);
  if (!fd.valid() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.value), address.length) != 0) {
    return;
  }
  fd_ = std::move(fd);
  own_fd_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  segment.state(node_rank).bell.store(name, std::memory_order_relaxed);
}

Sleep::Sleep(Segment& segment, int node_rank, const Bell* bell)
    : segment_(segment),
      state_(segment.state(node_rank)),
      bell_(bell),
      seen_(state_.wake_count.load(std::memory_order_acquire)) {
  (bell_ == nullptr ? state_.sleeping : state_.listening)
      .fetch_add(1, std::memory_order_relaxed);                        // partner: wake()
  segment_.header().sleepers.fetch_add(1, std::memory_order_seq_cst);  // partner: anybody_sleeps()
  if (segment.ranks() > 1) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void Sleep::sleep(int timeout_us) {
  const timespec timeout = duration(timeout_us);
  syscall(SYS_futex, &state_.wake_count, FUTEX_WAIT, seen_, &timeout, nullptr, 0);
}

Sleep::~Sleep() {
  segment_.header().sleepers.fetch_sub(1, std::memory_order_relaxed);
  (bell_ == nullptr ? state_.sleeping : state_.listening).fetch_sub(1, std::memory_order_relaxed);
}

bool Sleep::sleep_on(std::array<int, 2> descriptors, int timeout_us) {
  std::array<pollfd, 4> fds = {pollfd{.fd = bell_->fd(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = bell_->own_fd(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = descriptors[0], .events = POLLIN, .revents = 0},
                               pollfd{.fd = descriptors[1], .events = POLLIN, .revents = 0}};
  const timespec timeout = duration(timeout_us);
  if (ppoll(fds.data(), fds.size(), &timeout, nullptr) <= 0) return false;
  std::array<char, 16> bytes;
  while (fds[0].revents != 0 && recv(bell_->fd(), bytes.data(), bytes.size(), 0) > 0) {
  }
  std::uint64_t rung = 0;
  if (fds[1].revents != 0) (void)!read(bell_->own_fd(), &rung, sizeof rung);
  return true;
}

}  // namespace carillon::shm
