// SPDX-License-Identifier: Apache-2.0
//
// A socket of the switch protocol where the system is short of something: what passes ends neither
// a switch nor a team.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "transport/aggregate/udp_port.h"

namespace {

int g_error = 0;  // of all calls, until it is 0 again

}  // namespace

extern "C" {
int __real_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
int __wrap_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);

int __wrap_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (g_error == 0) return __real_recvmmsg(fd, messages, count, flags, timeout);
  errno = g_error;
  return -1;
}
}  // extern "C"

namespace carillon::aggregate {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;

class Heard final : public DatagramListener {
 public:
  void on_datagram(const Endpoint& /*from*/, std::span<const std::byte> /*datagram*/) override {
    ++count;
  }
  int count = 0;
};

TEST(SwitchPort, WhatPassesIsNoError) {
  const auto from = UdpPort::open({kLoopback, 0}), to = UdpPort::open({kLoopback, 0});
  ASSERT_TRUE(from.ok() && to.ok());
  const Endpoint there = to.value()->at();
  from.value()->send({&there, 1}, std::vector<std::byte>(10));
  from.value()->flush();
  Heard heard;
  for (const int error : {ENOMEM, ENOBUFS, EINTR, ENETDOWN}) {
    g_error = error;
    const Status status = to.value()->receive(heard);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  EXPECT_EQ(heard.count, 0);
  g_error = 0;
  EXPECT_TRUE(to.value()->receive(heard).ok());
  EXPECT_EQ(heard.count, 1);
}

TEST(SwitchPort, WhatDoesNotPassIs) {
  const auto port = UdpPort::open({kLoopback, 0});
  ASSERT_TRUE(port.ok());
  Heard heard;
  g_error = EBADF;
  EXPECT_EQ(port.value()->receive(heard).code(), Code::kSystem);
  g_error = 0;
}

}  // namespace
}  // namespace carillon::aggregate
