// SPDX-License-Identifier: Apache-2.0
//
// Who leaves a machine where others want the cores: a turn is long in coming after each sched_yield
// (which is led through this file). Of the time that it may take to leave it needs no more than to
// find out who has ended.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "support/calls.h"
#include "support/process.h"

namespace {

constexpr useconds_t kTurnUs = 30000;
bool busy = false;
int yields = 0;

}  // namespace

extern "C" {
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): the linker's names
int __real_sched_yield();
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
int __wrap_sched_yield() {
  if (busy) {
    ++yields;
    usleep(kTurnUs);
  }
  return __real_sched_yield();
}
}

namespace carillon::test {
namespace {

// What it has to tell a rank that was killed is never taken. Two seconds are what it would wait for
// one that lives: 66 turns. To be refused three times takes less than twenty.
TEST(LeavingBusy, NobodyWaitsForWhoHasEnded) {
  constexpr int kMostTurns = 33;
  setenv("CARILLON_NODE_RANKS", "1", 1);
  Meeting world(2), meeting(2);
  const std::vector<int> exits = run_processes(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    const OtherProcess killed(tell_process(world, rank)[1]);
    world.barrier(rank);
    if (rank == 1) raise(SIGKILL);
    ASSERT_TRUE(killed.wait_for_end());
    crl_team_fail(team, CRL_ERR_NO_MEMORY);
    crl_team_destroy(team);
    busy = true;
    crl_context_destroy(context);
    busy = false;
    std::printf("%d turns\n", yields);
    EXPECT_GT(yields, 0);
    EXPECT_LT(yields, kMostTurns);
  });
  EXPECT_EQ(exits, (std::vector<int>{0, -SIGKILL}));
  unsetenv("CARILLON_NODE_RANKS");
}

}  // namespace
}  // namespace carillon::test
