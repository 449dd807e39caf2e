// SPDX-License-Identifier: Apache-2.0
//
// Turns at what takes long: as many as there are shares go through all, each through its share.
#include "support/turn.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace carillon::test {
namespace {

const std::vector<int> kThings = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

class Turn : public testing::Test {
 protected:
  // Of the runner's, nothing counts here.
  void SetUp() override { TearDown(); }
  void TearDown() override {
    unsetenv("CARILLON_TEST_TURN");
    unsetenv("CARILLON_TEST_WHOLE");
  }
};

TEST_F(Turn, AsManyAsThereAreSharesGoThroughAll) {
  for (const int share : {1, 2, 3, 5, 13, 14}) {
    std::map<int, int> times;
    for (int turn = 0; turn < share; ++turn) {
      setenv("CARILLON_TEST_TURN", std::to_string(268435000 + turn).c_str(), 1);
      for (const int thing : with_turns(share, kThings)) ++times[thing];
    }
    for (const int thing : kThings) EXPECT_EQ(times[thing], thing == 0 ? share : 1) << share;
  }
}

TEST_F(Turn, AllIsDoneIfThatIsAskedFor) {
  EXPECT_LT(with_turns(3, kThings).size(), kThings.size());
  setenv("CARILLON_TEST_WHOLE", "1", 1);
  EXPECT_EQ(with_turns(3, kThings), kThings);
}

int status_of(const std::string& words) {
  const int status =
      std::system(("tests/support/turn " + words + " >/dev/null").c_str());  // NOLINT
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Turn, IsTheSameOfScripts) {
  EXPECT_EQ(status_of("3 1"), 0) << "without a number, all";
  for (const int share : {1, 2, 3}) {
    for (const int turn : {0, 1, 268435000}) {
      setenv("CARILLON_TEST_TURN", std::to_string(turn).c_str(), 1);
      for (unsigned long number = 0; number < 4; ++number) {
        const bool has = has_turn(share, number);
        const std::string words = std::to_string(share) + " " + std::to_string(number);
        EXPECT_EQ(status_of(words), has ? 0 : 1) << words << " in turn " << turn;
        EXPECT_EQ(status_of(words + " sh -c 'exit 5'"), has ? 5 : 77)
            << words << " in turn " << turn;
      }
    }
  }
  setenv("CARILLON_TEST_WHOLE", "1", 1);
  EXPECT_EQ(status_of("3 1"), 0);
  EXPECT_EQ(status_of("3 2 sh -c 'exit 5'"), 5);
}

}  // namespace
}  // namespace carillon::test
