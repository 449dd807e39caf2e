// SPDX-License-Identifier: Apache-2.0
//
// How long a wait leaves a line alone before its first look: as long as messages come soon after
// too early a look, and no longer than they need.
#include "engine/patience.h"

#include <gtest/gtest.h>

namespace carillon::test {
namespace {

// Of a message that comes after `turns` of its reader's: a reader that looks earlier finds it soon.
void wait_for(Patience& patience, int turns) {
  if (patience.turns() >= turns) {
    patience.note_there();
  } else {
    patience.note_looks(Patience::kSoon - 1);
  }
}

TEST(Patience, DoesNotTarryAtFirst) { EXPECT_EQ(Patience().turns(), 0); }

TEST(Patience, LearnsWhenMessagesCome) {
  for (const int turns : {1, 37, 120, 300}) {
    Patience patience;
    for (int i = 0; i < 200; ++i) wait_for(patience, turns);
    int early = 0;
    for (int i = 0; i < 1000; ++i) {
      early += patience.turns() < turns ? 1 : 0;
      EXPECT_NEAR(patience.turns(), turns, 10);
      wait_for(patience, turns);
    }
    EXPECT_GT(early, 100) << turns;
    EXPECT_LT(early, 300) << turns;
  }
}

TEST(Patience, EndsWhereMessagesAreThere) {
  Patience patience;
  for (int i = 0; i < 100; ++i) wait_for(patience, 300);
  for (int i = 0; i < 200; ++i) patience.note_there();
  EXPECT_EQ(patience.turns(), 0);
}

TEST(Patience, IsNotForThoseWhoComeMuchLater) {
  Patience patience;
  for (int i = 0; i < 100; ++i) patience.note_looks(Patience::kSoon);
  EXPECT_EQ(patience.turns(), 0);
}

// A wait that polls, does something else and polls again looks many times in all.
TEST(Patience, IsNotForLaterPollsOfAWait) {
  Patience patience;
  for (int i = 0; i < 100; ++i) {
    patience.note_none();
    patience.note_looks(0);
  }
  EXPECT_EQ(patience.turns(), 0);
  patience.note_looks(0);
  const int turns = patience.turns();
  EXPECT_GT(turns, 0);
  patience.note_none();
  patience.note_there();
  EXPECT_EQ(patience.turns(), turns);
  patience.note_there();
  EXPECT_LT(patience.turns(), turns);
}

TEST(Patience, HasAnEnd) {
  Patience patience;
  for (int i = 0; i < 1000; ++i) patience.note_looks(0);
  EXPECT_EQ(patience.turns(), Patience::kMostTurns);
}

}  // namespace
}  // namespace carillon::test
