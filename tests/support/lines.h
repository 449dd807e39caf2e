// SPDX-License-Identifier: Apache-2.0
//
// Small change of the lifelines' tests: waiting for what they see, connections made by hand.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/calls.h"
#include "team/lifeline.h"

namespace carillon::test {

using State = Lifeline::State;

inline constexpr std::uint64_t kWorld = 0x0123456789abcdef;
inline constexpr double kPatience = 20;  // seconds, for what has no bound of its own
inline constexpr double kSeen = 1;       // seconds, within which an end is seen

inline void nap() { poll(nullptr, 0, 1); }

/// Until it is so; false if it is not within so many seconds.
inline bool within(double seconds, const std::vector<Lifeline*>& lines,
                   const std::function<bool()>& so) {
  const Stopwatch watch;
  for (;;) {
    for (Lifeline* line : lines) line->progress();
    if (so()) return true;
    if (watch.seconds() > seconds) return false;
    nap();
  }
}

inline std::unique_ptr<Lifeline> make_line(int rank, int ranks, std::uint64_t world = kWorld) {
  auto made = Lifeline::open(rank, ranks);
  if (!made.ok()) {
    ADD_FAILURE() << made.status().to_string();
    return nullptr;
  }
  made.value()->join(world);
  return std::move(made.value());
}

/// A connection by hand to that port of this node.
inline UniqueFd connect_to(std::uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return fd;
}

inline void send_bytes(const UniqueFd& fd, const void* data, std::size_t bytes) {
  (void)send(fd.get(), data, bytes, MSG_NOSIGNAL);  // the other end may have closed already
}

/// What the other end says until it closes; nothing if it has not yet.
inline bool is_closed(const UniqueFd& fd, std::string* said = nullptr) {
  std::array<char, 256> bytes = {};
  const ssize_t got = recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got > 0 && said != nullptr) said->append(bytes.data(), static_cast<std::size_t>(got));
  return got == 0 || (got < 0 && errno != EAGAIN);
}

inline UniqueFd listen_on_loopback(int backlog, LifelineAddress& address) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(listen(fd.get(), backlog), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &length), 0);
  address.port = ntohs(at.sin_port);
  address.count = 1;
  address.ips[0] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  return fd;
}

}  // namespace carillon::test
