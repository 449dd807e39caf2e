// SPDX-License-Identifier: Apache-2.0
//
// How messages are copied that another core has written: what is learned of it.
#include "engine/copy_choice.h"

#include <gtest/gtest.h>

namespace carillon {
namespace {

using shm::Taken;
using shm::Way;
using std::chrono::nanoseconds;

constexpr std::int64_t kBytes = 65536;
constexpr int kTurn = 64;
constexpr int kCycle = kTurn * 64;  // one turn of one way, all others of the other

// So many messages come, of which a copy takes so long; how many are copied by vectors.
int copies(CopyChoice& choice, int messages, nanoseconds memcpy, nanoseconds vectors,
           Taken taken = Taken::kCopied) {
  int by_vectors = 0;
  for (int i = 0; i < messages; ++i) {
    const bool is = choice.next_by_vectors(taken, Way::kCached);
    by_vectors += is ? 1 : 0;
    choice.note(taken, Way::kCached, is, is ? vectors : memcpy, kBytes);
  }
  return by_vectors;
}

TEST(CopyChoice, TriesTheOtherCopyNowAndThen) {
  CopyChoice choice;
  EXPECT_EQ(copies(choice, kCycle, nanoseconds(3000), nanoseconds(6000)), kTurn);
  EXPECT_EQ(copies(choice, kCycle, nanoseconds(3000), nanoseconds(6000)), kTurn);
}

TEST(CopyChoice, TakesTheQuickerOne) {
  CopyChoice choice;
  copies(choice, kCycle, nanoseconds(6000), nanoseconds(3000));
  EXPECT_EQ(copies(choice, kCycle, nanoseconds(6000), nanoseconds(3000)), kCycle - kTurn);
}

// Even if it is known of one message in four only how long it took, as in a turn of trial.
TEST(CopyChoice, KnowsBothAfterOneTurn) {
  CopyChoice choice;
  for (int i = 0; i < 2 * kTurn; ++i) {
    const bool is = choice.next_by_vectors(Taken::kCopied, Way::kCached);
    if (i % 4 != 0) continue;
    choice.note(Taken::kCopied, Way::kCached, is, nanoseconds(is ? 3000 : 6000), kBytes);
  }
  EXPECT_EQ(copies(choice, kTurn, nanoseconds(6000), nanoseconds(3000)), kTurn);
}

TEST(CopyChoice, BeginsByVectorsWithWhatComesFromMemoryOrIsHandedOver) {
  CopyChoice choice;
  EXPECT_FALSE(choice.next_by_vectors(Taken::kCopied, Way::kCached));
  EXPECT_FALSE(choice.next_by_vectors(Taken::kReduced, Way::kPrivate));
  EXPECT_TRUE(choice.next_by_vectors(Taken::kCopied, Way::kUncached));
  EXPECT_TRUE(choice.next_by_vectors(Taken::kShortCopied, Way::kUncached));
  EXPECT_TRUE(choice.next_by_vectors(Taken::kReduced, Way::kHanded));
}

TEST(CopyChoice, FollowsAChange) {
  CopyChoice choice;
  copies(choice, kCycle, nanoseconds(6000), nanoseconds(3000));
  copies(choice, kCycle, nanoseconds(15000), nanoseconds(30000));
  EXPECT_EQ(copies(choice, kCycle, nanoseconds(15000), nanoseconds(30000)), kTurn);
}

TEST(CopyChoice, StaysWhereNothingIsGained) {
  CopyChoice choice;
  copies(choice, kCycle, nanoseconds(3000), nanoseconds(2900));
  EXPECT_EQ(copies(choice, kCycle, nanoseconds(3000), nanoseconds(2900)), kTurn);
}

TEST(CopyChoice, IsLearnedApartForEachKind) {
  CopyChoice choice;
  copies(choice, kCycle, nanoseconds(6000), nanoseconds(3000), Taken::kCopiedStream);
  EXPECT_EQ(copies(choice, kTurn, nanoseconds(6000), nanoseconds(3000)), 0);
  EXPECT_TRUE(choice.next_by_vectors(Taken::kCopiedStream, Way::kCached));
}

}  // namespace
}  // namespace carillon
