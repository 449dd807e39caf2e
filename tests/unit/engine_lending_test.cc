// SPDX-License-Identifier: Apache-2.0
//
// Whether long messages within a node are better read in the sender's memory: what is learned of
// it.
#include <gtest/gtest.h>

#include "engine/lending.h"

namespace carillon {
namespace {

using shm::Reads;
using shm::Taken;
using std::chrono::microseconds;

constexpr std::int64_t kBytes = 65536;

// One whose memory has been used before.
Lending warm() {
  Lending lending;
  for (int i = 0; i < 16; ++i) {
    lending.note_shared(Taken::kCopied, microseconds(1000), kBytes);
    lending.note_written(false, microseconds(1000), kBytes);
  }
  return lending;
}

TEST(Lending, TakesNoAccountOfMemoryThatIsNew) {
  Lending lending = warm();
  lending.note_private(Taken::kCopied, microseconds(12), kBytes);
  EXPECT_FALSE(lending.pays(Taken::kCopied)) << "the other way is not known";
  lending.note_shared(Taken::kCopied, microseconds(4), kBytes);
  lending.note_written(false, microseconds(4), kBytes);
  EXPECT_FALSE(lending.pays(Taken::kCopied));
}

TEST(Lending, PaysOnceBothWaysAreKnown) {
  Lending lending = warm();
  EXPECT_FALSE(lending.pays(Taken::kCopied));
  lending.note_private(Taken::kCopied, microseconds(5), kBytes);
  EXPECT_FALSE(lending.pays(Taken::kCopied)) << "the other way is not known";
  lending.note_shared(Taken::kCopied, microseconds(4), kBytes);
  EXPECT_TRUE(lending.pays(Taken::kCopied)) << "the sender copies it, too";
}

TEST(Lending, IsLearnedApartForWhatIsReduced) {
  Lending lending = warm();
  lending.note_private(Taken::kCopied, microseconds(5), kBytes);
  lending.note_shared(Taken::kCopied, microseconds(5), kBytes);
  lending.note_private(Taken::kReduced, microseconds(12), kBytes);
  EXPECT_FALSE(lending.pays(Taken::kReduced)) << "the copies' time is not known of sums";
  lending.note_shared(Taken::kReduced, microseconds(5), kBytes);
  EXPECT_FALSE(lending.pays(Taken::kReduced));
  EXPECT_TRUE(lending.pays(Taken::kCopied));
}

TEST(Lending, CountsWhatTheSenderTakes) {
  Lending lending = warm();
  lending.note_private(Taken::kReduced, microseconds(12), kBytes);
  lending.note_shared(Taken::kReduced, microseconds(5), kBytes);
  EXPECT_FALSE(lending.pays(Taken::kReduced));
  lending.note_written(false, microseconds(9), kBytes);
  EXPECT_TRUE(lending.pays(Taken::kReduced));
}

TEST(Lending, OneThatWasInterruptedSaysLittle) {
  Lending lending = warm();
  lending.note_private(Taken::kCopied, microseconds(5), kBytes);
  lending.note_shared(Taken::kCopied, microseconds(5), kBytes);
  lending.note_private(Taken::kCopied, microseconds(100000), kBytes);
  EXPECT_TRUE(lending.pays(Taken::kCopied));
}

TEST(Lending, PiecesOfAStreamAreWrittenWhileOthersAreTaken) {
  Lending lending = warm();
  for (int i = 0; i < 64; ++i) {
    lending.note_private(Taken::kCopiedStream, microseconds(6), kBytes);
    lending.note_written(true, microseconds(4), kBytes);
    lending.note_shared(Taken::kCopiedStream, microseconds(4), kBytes);
  }
  EXPECT_FALSE(lending.pays(Taken::kCopiedStream)) << "4 us beside 4 us, against 6";
  for (int i = 0; i < 64; ++i) {
    lending.note_written(true, microseconds(8), kBytes);
    lending.note_shared(Taken::kCopiedStream, microseconds(4), kBytes);
  }
  EXPECT_TRUE(lending.pays(Taken::kCopiedStream)) << "the writer needs 8 us";
  EXPECT_FALSE(lending.pays(Taken::kCopied)) << "nothing is known of whole messages";
}

TEST(Lending, StaysWithWhatIsHardlyWorse) {
  Lending lending = warm();
  const auto learn = [&](microseconds lent, microseconds shared) {
    for (int i = 0; i < 64; ++i) {
      lending.note_private(Taken::kCopied, lent, kBytes);
      lending.note_written(false, shared, kBytes);
      lending.note_shared(Taken::kCopied, shared, kBytes);
    }
  };
  learn(microseconds(197), microseconds(100));
  EXPECT_FALSE(lending.pays(Taken::kCopied)) << "197 us against 200";
  learn(microseconds(150), microseconds(100));
  EXPECT_TRUE(lending.pays(Taken::kCopied));
  learn(microseconds(203), microseconds(100));
  EXPECT_TRUE(lending.pays(Taken::kCopied)) << "203 us against 200";
  learn(microseconds(250), microseconds(100));
  EXPECT_FALSE(lending.pays(Taken::kCopied));
}

TEST(Lending, LooksAtTheClockForBothThatComeInTurn) {
  Lending lending;
  int writes = 0, takes = 0;
  for (int i = 0; i < 64; ++i) {
    writes += lending.write_is_due() ? 1 : 0;
    takes += lending.take_is_due() ? 1 : 0;
  }
  EXPECT_EQ(writes, 16);
  EXPECT_EQ(takes, 16);
}

TEST(Lending, ReadersSayWhatTheyPreferForEachUse) {
  EXPECT_FALSE(Reads().can());
  const Reads able = Reads::of_who_can();
  EXPECT_TRUE(able.can());
  EXPECT_FALSE(able.prefers(Taken::kCopied));
  EXPECT_FALSE(able.prefers(Taken::kReduced));
  for (int way = 0; way < shm::kTakenWays; ++way) {
    const auto taken = static_cast<Taken>(way);
    const Reads told(able.rather(taken).bits());
    for (int other = 0; other < shm::kTakenWays; ++other) {
      EXPECT_EQ(told.prefers(static_cast<Taken>(other)), other == way);
    }
  }
}

}  // namespace
}  // namespace carillon
