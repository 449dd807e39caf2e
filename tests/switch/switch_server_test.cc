// SPDX-License-Identifier: Apache-2.0
//
// A switch behind a socket, and its clock, which goes on while it is stopped.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "switch/daemon/server.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;

std::int64_t g_now_s = 1000;

// What a server has its engine do, until a second has passed.
class Noting final : public Engine {
 public:
  Noting(std::vector<std::string>* done, int end) : done_(*done), end_(end) {}
  Status receive(const Endpoint& /*from*/, std::span<const std::byte> /*datagram*/,
                 Output& /*output*/) override {
    done_.emplace_back("receives");
    return {};
  }
  Status pass_time(std::uint64_t /*most*/) override {
    done_.emplace_back("a second");
    const std::uint64_t one = 1;
    EXPECT_EQ(write(end_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
    return {};
  }
  [[nodiscard]] const Switch& reference() const override { return switch_; }

 private:
  std::vector<std::string>& done_;
  int end_;
  Switch switch_{SwitchConfig{}};
};

// It was stopped for longer than groups may be idle, and what their hosts have sent waits.
TEST(SwitchServer, WhoWasStoppedTakesWhatWaitsBeforeAnythingIsIdle) {
  const UniqueFd end(eventfd(0, EFD_CLOEXEC));
  std::vector<std::string> done;
  auto server = Server::open({.at = {kLoopback, 0}, .idle_s = 600, .now_s = [] { return g_now_s; }},
                             std::make_unique<Noting>(&done, end.get()));
  ASSERT_TRUE(server.ok()) << server.status().to_string();
  const auto host = UdpPort::open({kLoopback, 0});
  ASSERT_TRUE(host.ok());
  const Endpoint there = server.value()->at();
  for (int i = 0; i < 3; ++i) host.value()->send({&there, 1}, std::vector<std::byte>(10));
  host.value()->flush();
  g_now_s += 100'000;
  const Status status = server.value()->serve(end.get());
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(done, (std::vector<std::string>{"receives", "receives", "receives", "a second"}));
}

}  // namespace
}  // namespace carillon::aggregate
