// SPDX-License-Identifier: Apache-2.0
//
// A team leaves its switch, over the machine's loopback, and one of the last words of the switch to
// one of its ranks gets lost: that asks again, and all leave at once. And one rank hears nothing of
// the switch any more: all do without, and that one says why.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "support/calls.h"
#include "switch/model/switch.h"
#include "transport/aggregate/udp_port.h"

namespace {

int results_until_lost = 0;  // of no elements: of farewells; 0: this process loses none
int lost = 0;
std::atomic<int> deaf_to_port = 0;  // nothing comes from there

}  // namespace

extern "C" {

int __real_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
int __wrap_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);

int __wrap_recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  using namespace carillon::aggregate;
  const int come = __real_recvmmsg(fd, messages, count, flags, timeout);
  for (int i = 0; deaf_to_port.load() != 0 && i < come; ++i) {
    const auto* const from = static_cast<const sockaddr_in*>(messages[i].msg_hdr.msg_name);
    if (ntohs(from->sin_port) == deaf_to_port.load()) messages[i].msg_len = 0;
  }
  for (int i = 0; results_until_lost > 0 && i < come; ++i) {
    if (messages[i].msg_len < kHeaderBytes) continue;
    const auto* const bytes = static_cast<const std::byte*>(messages[i].msg_hdr.msg_iov->iov_base);
    const Header header = load_header(bytes);
    if (header.kind != Kind::kResult || header.count != 0) continue;
    if (--results_until_lost > 0) continue;
    messages[i].msg_len = 0;
    ++lost;
  }
  return come;
}
}

namespace carillon::test {
namespace {

constexpr int kRanks = 3;
constexpr double kBoundS = 1.5;  // they would wait two seconds for each other

// Until all ranks have ended.
class Switchd final : private aggregate::DatagramListener {
 public:
  Switchd() : switch_({.administrator = {0x7777777777777777, 0x7777777777777777}}) {
    auto port = aggregate::UdpPort::open({0x7f000001, 0});
    EXPECT_TRUE(port.ok()) << port.status().to_string();
    port_ = std::move(port.value());
  }
  [[nodiscard]] int port() const { return port_->at().port; }
  [[nodiscard]] std::size_t jobs() const { return switch_.jobs(); }
  void serve(const std::atomic<int>& ended) {
    while (ended.load() < kRanks) {
      ASSERT_TRUE(port_->receive(*this).ok());
      port_->flush();
      usleep(50);
    }
  }

 private:
  void on_datagram(const aggregate::Endpoint& from, std::span<const std::byte> datagram) override {
    switch_.receive(from, datagram, *port_);
  }
  aggregate::Switch switch_;
  std::unique_ptr<aggregate::UdpPort> port_;
};

class SwitchLeaving : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::ofstream(key_) << std::string(32, '7') << '\n';
    ASSERT_EQ(chmod(key_.c_str(), 0600), 0);
    const std::string at = "127.0.0.1:" + std::to_string(switchd_.port());
    setenv("CARILLON_NODE_RANKS", "1,1,1", 1);
    setenv("CARILLON_NETWORK", "fabric", 1);
    setenv("CARILLON_ALGORITHM", "allreduce=switch", 1);
    setenv("CARILLON_SWITCH", at.c_str(), 1);
    setenv("CARILLON_SWITCH_KEY", key_.c_str(), 1);
    ended_ = static_cast<std::atomic<int>*>(
        mmap(nullptr, sizeof *ended_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(ended_), MAP_FAILED);
  }
  void TearDown() override {
    for (const char* name : {"CARILLON_NODE_RANKS", "CARILLON_NETWORK", "CARILLON_ALGORITHM",
                             "CARILLON_SWITCH", "CARILLON_SWITCH_KEY"}) {
      unsetenv(name);
    }
    unlink(key_.c_str());
    munmap(static_cast<void*>(ended_), sizeof *ended_);
  }
  const std::string key_ = testing::TempDir() + "switch_leaving_test." + std::to_string(getpid());
  Switchd switchd_;
  std::atomic<int>* ended_ = nullptr;
};

TEST_P(SwitchLeaving, AllLeaveAtOnceThoughALastWordIsLost) {
  Meeting world(kRanks), members(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks + 1, [&](int rank) {
    if (rank == kRanks) {
      switchd_.serve(*ended_);
      EXPECT_EQ(switchd_.jobs(), 0U);
      return;
    }
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    constexpr std::size_t kCount = 1000;
    auto data = values_of(rank, 1, kCount);
    expect_ok(crl_allreduce(team, data.data(), data.data(), kCount, CRL_INT64, CRL_SUM));
    EXPECT_EQ(data, sums_of(kRanks, 1, kCount));
    EXPECT_STREQ(crl_team_last_algorithm(team), "allreduce.switch");
    meeting.barrier(rank);
    if (rank == 1) results_until_lost = GetParam();
    const Stopwatch watch;
    crl_team_destroy(team);
    crl_context_destroy(context);
    EXPECT_LT(watch.seconds(), kBoundS);
    EXPECT_EQ(lost, rank == 1 ? 1 : 0);
    ended_->fetch_add(1);
  });
}

class SwitchLost : public SwitchLeaving {};

TEST_F(SwitchLost, WhoKnowsSaysWhyAllDoWithout) {
  constexpr int kDeaf = 2;
  Meeting world(kRanks), members(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks + 1, [&](int rank) {
    if (rank == kRanks) return switchd_.serve(*ended_);
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    meeting.barrier(rank);
    testing::internal::CaptureStderr();
    if (rank == kDeaf) deaf_to_port = switchd_.port();
    constexpr std::size_t kCount = 1000;
    auto data = values_of(rank, 1, kCount);
    expect_ok(crl_allreduce(team, data.data(), data.data(), kCount, CRL_INT64, CRL_SUM));
    EXPECT_EQ(data, sums_of(kRanks, 1, kCount));
    meeting.barrier(rank);
    data = values_of(rank, 2, kCount);  // by then all have been told
    expect_ok(crl_allreduce(team, data.data(), data.data(), kCount, CRL_INT64, CRL_SUM));
    EXPECT_EQ(data, sums_of(kRanks, 2, kCount));
    const std::string said = testing::internal::GetCapturedStderr();
    const auto says = [&](const char* what) { return said.find(what) != said.npos; };
    EXPECT_EQ(says("has not answered 8 questions"), rank == kDeaf) << said;
    EXPECT_EQ(says("has lost a switch, and says why"), rank == 0) << said;
    crl_team_destroy(team);
    crl_context_destroy(context);
    ended_->fetch_add(1);
  });
}

INSTANTIATE_TEST_SUITE_P(Words, SwitchLeaving, testing::Values(1, 2));

}  // namespace
}  // namespace carillon::test
