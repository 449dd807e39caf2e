// SPDX-License-Identifier: Apache-2.0
//
// CARILLON_WATCHDOG: who waits for long in a collective says for whom.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/config.h"
#include "support/calls.h"
#include "support/words.h"

namespace carillon::test {
namespace {

constexpr int kRanks = 4;

class Watchdog : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("CARILLON_WATCHDOG", "50ms", 1);
    if (*GetParam() != '\0') setenv("CARILLON_NODE_RANKS", GetParam(), 1);
  }
  void TearDown() override {
    unsetenv("CARILLON_WATCHDOG");
    unsetenv("CARILLON_NODE_RANKS");
  }
};

TEST_P(Watchdog, SaysWhoIsNotThere) {
  Meeting world(kRanks), members(kRanks);
  Words words;
  expect_processes_ok(kRanks, [&](int rank) {
    if (rank != 3) words.speak();
    crl_context_h context = make_context(world, rank, false, 40);
    crl_team_h team = make_team(context, members.oob(rank));
    crl_team_set_name(team, "the choir");
    expect_ok(crl_barrier(team));
    if (rank == 3) {
      // Each of the others has said so; the last words of a neighbour name only this one.
      for (const char* const who : {"rank 0", "rank 1", "rank 2"}) {
        words.listen_for(std::string("watchdog: ") + who +
                         " of a team of 4 (the choir) has waited");
      }
      words.listen_for(
          " s in its collective 2 on the team, allreduce; not in it: rank 3 (has completed 1)");
    }
    std::int64_t value = rank;
    std::int64_t sum = 0;
    expect_ok(crl_allreduce(team, &value, &sum, 1, CRL_INT64, CRL_SUM));
    EXPECT_EQ(sum, 6);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(Nodes, Watchdog, testing::Values("", "2,2"));

TEST(WatchdogSetting, MustBeATime) {
  for (const char* const text : {"30", "s", "-3s", "0s", "3h", "99999999999s"}) {
    setenv("CARILLON_WATCHDOG", text, 1);
    const auto config = read_config();
    EXPECT_FALSE(config.ok()) << text;
    EXPECT_NE(config.status().to_string().find(std::string("CARILLON_WATCHDOG=") + text),
              std::string::npos);
  }
  setenv("CARILLON_WATCHDOG", "2min", 1);
  EXPECT_EQ(read_config().value().watchdog_ms, 120000);
  unsetenv("CARILLON_WATCHDOG");
}

}  // namespace
}  // namespace carillon::test
