// SPDX-License-Identifier: Apache-2.0
//
// A member is killed while its team's multicast groups are being joined, over the machine's
// loopback: in the very system call that joins the first, second or third of them. The others end
// with an error, in bounded time, and keep no socket of the groups.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/calls.h"
#include "support/sockets.h"

namespace {

int joins_until_killed = 0;  // of this process; 0: it lives
std::atomic<bool>* killed = nullptr;

}  // namespace

extern "C" {

int __real_setsockopt(int fd, int level, int name, const void* value, socklen_t bytes);
int __wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t bytes);

int __wrap_setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) {
  const bool joins = level == IPPROTO_IP && name == IP_ADD_MEMBERSHIP;
  if (joins && joins_until_killed > 0 && --joins_until_killed == 0) {
    killed->store(true);
    raise(SIGKILL);
  }
  return __real_setsockopt(fd, level, name, value, bytes);
}
}

namespace carillon::test {
namespace {

constexpr int kRanks = 5;
constexpr int kVictim = 2;  // leads the second node, and so joins all groups
constexpr int kGroups = 3;
constexpr int kDeadPeerMs = 100;
constexpr double kBoundS = 20;  // far more than the documented five seconds, on a busy machine

class MulticastDying : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    killed = static_cast<std::atomic<bool>*>(
        mmap(nullptr, sizeof *killed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(killed), MAP_FAILED);
    setenv("CARILLON_NODE_RANKS", "2,2,1", 1);
    setenv("CARILLON_NETWORK", "fabric", 1);
    setenv("CARILLON_MULTICAST_JOIN_S", "5", 1);  // who is dead is waited for so long
  }
  void TearDown() override {
    for (const char* name : {"CARILLON_NODE_RANKS", "CARILLON_NETWORK", "CARILLON_MULTICAST",
                             "CARILLON_MULTICAST_JOIN_S", "CARILLON_ALGORITHM"}) {
      unsetenv(name);
    }
    munmap(static_cast<void*>(killed), sizeof *killed);
  }
  static void expect_one_killed(const std::vector<int>& exits) {
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank == kVictim ? -SIGKILL : 0) << rank;
    }
    EXPECT_TRUE(killed->load());
  }
};

// The groups are joined while the team is made: it fails. The exchange never ends then.
TEST_P(MulticastDying, WhileTheTeamIsMade) {
  setenv("CARILLON_MULTICAST", "udp:lo", 1);
  setenv("CARILLON_ALGORITHM", "bcast=multicast_leader", 1);
  Meeting world(kRanks), members(kRanks);
  expect_one_killed(run_processes(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, kDeadPeerMs);
    const std::size_t sockets_before = udp_sockets();
    if (rank == kVictim) joins_until_killed = GetParam();
    const Stopwatch watch;
    crl_team_h team = make_team(context, members.oob(rank));
    EXPECT_EQ(settle(team), CRL_ERR_PEER_DEAD) << crl_last_error();
    EXPECT_LT(watch.seconds(), kBoundS);
    crl_team_destroy(team);
    crl_context_destroy(context);
    EXPECT_EQ(udp_sockets(), sockets_before);
  }));
}

// They are joined by exchanges of the team itself, in a broadcast: it ends as any call does when a
// member dies.
TEST_P(MulticastDying, WhileTheTeamIsInUse) {
  setenv("CARILLON_MULTICAST", "auto", 1);
  Meeting world(kRanks), members(kRanks);
  expect_one_killed(run_processes(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, kDeadPeerMs);
    const std::size_t sockets_before = udp_sockets();
    crl_team_h team = make_team(context, members.oob(rank));
    if (rank == kVictim) joins_until_killed = GetParam();
    constexpr std::size_t kCount = 8192;  // 64 KiB: 64 of them make the team join
    constexpr int kCalls = 80;
    crl_status_t status = CRL_OK;
    Stopwatch watch;
    for (int call = 0; call < kCalls && status == CRL_OK; ++call) {
      const int root = call % kRanks;
      const auto expected = values_of(root, call, kCount);
      std::vector<std::int64_t> data = rank == root ? expected : std::vector<std::int64_t>(kCount);
      watch = Stopwatch();
      status = crl_bcast(team, data.data(), kCount * sizeof data[0], root);
      if (status == CRL_OK) {
        EXPECT_EQ(data, expected) << "call " << call << ", rank " << rank;
      }
    }
    EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << crl_last_error();
    EXPECT_LT(watch.seconds(), kBoundS);
    crl_team_destroy(team);
    crl_context_destroy(context);
    EXPECT_EQ(udp_sockets(), sockets_before);
  }));
}

INSTANTIATE_TEST_SUITE_P(Groups, MulticastDying, testing::Range(1, kGroups + 1));

}  // namespace
}  // namespace carillon::test
