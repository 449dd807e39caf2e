// SPDX-License-Identifier: Apache-2.0
//
// A switch does not answer while teams are being made. Another team, whose members have said before
// that they want it, does without, too, and is made; and of a team of which a member is killed
// meanwhile no socket stays.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/calls.h"
#include "support/sockets.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 3;
constexpr int kVictim = 2;
constexpr int kDeadPeerMs = 100;

class SwitchGone : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(key_) << std::string(32, '7') << '\n';
    ASSERT_EQ(chmod(key_.c_str(), 0600), 0);
    setenv("CARILLON_NODE_RANKS", "1,1,1", 1);
    setenv("CARILLON_NETWORK", "fabric", 1);
    setenv("CARILLON_SWITCH", "127.0.0.1:9", 1);  // where nobody answers
    setenv("CARILLON_SWITCH_KEY", key_.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name :
         {"CARILLON_NODE_RANKS", "CARILLON_NETWORK", "CARILLON_SWITCH", "CARILLON_SWITCH_KEY"}) {
      unsetenv(name);
    }
    unlink(key_.c_str());
  }
  const std::string key_ = testing::TempDir() + "switch_gone_test." + std::to_string(getpid());
};

void expect_sums(crl_team_h team, int round) {
  constexpr std::size_t kCount = 100;
  auto data = values_of(crl_team_rank(team), round, kCount);
  expect_ok(crl_allreduce(team, data.data(), data.data(), kCount, CRL_INT64, CRL_SUM));
  EXPECT_EQ(data, sums_of(crl_team_size(team), round, kCount));
}

// Ranks 0 and 1 have asked for it with both teams; as the first has found that nobody answers, the
// last member of the second, which has not, comes.
TEST_F(SwitchGone, WhileAnotherTeamIsMade) {
  Meeting world(kRanks), two(2), three(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h first = nullptr, second = nullptr;
    if (rank < 2) {
      first = make_team(context, two.oob(rank));
      second = make_team(context, three.oob(rank));
      expect_ok(settle(first));
    }
    meeting.barrier(rank);
    if (rank == 2) second = make_team(context, three.oob(rank));
    expect_ok(settle(second));
    if (first != nullptr) expect_sums(first, 1);
    expect_sums(second, 2);
    if (first != nullptr) crl_team_destroy(first);
    crl_team_destroy(second);
    crl_context_destroy(context);
  });
}

// One rank's way is none, by an address that packets may not be sent to. It is rank 0 that says so,
// and it knows why.
TEST_F(SwitchGone, WhoHasNoWayTellsWhy) {
  Meeting world(kRanks), members(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    if (rank == 1) setenv("CARILLON_SWITCH", "127.255.255.255", 1);
    crl_context_h context = make_context(world, rank);
    testing::internal::CaptureStderr();
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(settle(team));
    const std::string said = testing::internal::GetCapturedStderr();
    const bool told = said.find(
                          "rank 1 has no way to its switch: aggregate: no way to "
                          "127.255.255.255:27182: Permission denied") != said.npos;
    EXPECT_EQ(told, rank == 0) << said;
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// The variable has not come to one rank. That is said once, and by one of those that have it.
TEST_F(SwitchGone, WhoNamesNoSwitchIsNamed) {
  Meeting world(kRanks), first(kRanks), second(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    if (rank == 0) unsetenv("CARILLON_SWITCH");
    crl_context_h context = make_context(world, rank);
    for (Meeting* const members : {&first, &second}) {
      testing::internal::CaptureStderr();
      crl_team_h team = make_team(context, members->oob(rank));
      expect_ok(settle(team));
      const std::string said = testing::internal::GetCapturedStderr();
      const bool names =
          said.find("rank 0 of a team of 3 names none in CARILLON_SWITCH") != said.npos;
      EXPECT_EQ(names, rank == 1 && members == &first) << said;
      crl_team_destroy(team);
    }
    crl_context_destroy(context);
  });
}

// The victim goes when it has a socket for the switch, which is asked for seconds then.
TEST_F(SwitchGone, WhileAMemberIsKilled) {
  Meeting world(kRanks), members(kRanks);
  const std::vector<int> exits = run_processes(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, kDeadPeerMs);
    const std::size_t sockets_before = udp_sockets();
    crl_team_h team = make_team(context, members.oob(rank));
    while (rank == kVictim) {
      (void)crl_team_test(team);
      if (udp_sockets() > sockets_before) raise(SIGKILL);
    }
    EXPECT_EQ(settle(team), CRL_ERR_PEER_DEAD) << crl_last_error();
    crl_team_destroy(team);
    EXPECT_EQ(udp_sockets(), sockets_before);
    crl_context_destroy(context);
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(exits[static_cast<std::size_t>(rank)], rank == kVictim ? -SIGKILL : 0) << rank;
  }
}

}  // namespace
}  // namespace carillon::test
