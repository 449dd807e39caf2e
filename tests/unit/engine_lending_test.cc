// SPDX-License-Identifier: Apache-2.0
//
// Whether long messages within a node are better read in the sender's memory: what is learned of
// it.
#include <gtest/gtest.h>

#include <array>

#include "engine/lending.h"

namespace carillon {
namespace {

using shm::Taken;
using std::chrono::microseconds;

constexpr std::int64_t kBytes = 65536;

// One whose memory has been used before, of a node with so many ranks.
Lending warm(int ranks = 1) {
  Lending lending(ranks);
  for (int i = 0; i < 16; ++i) {
    lending.note_shared(Taken::kCopied, microseconds(1000), kBytes);
    lending.note_written(false, microseconds(1000), kBytes);
  }
  return lending;
}

// Of messages to a rank that learns what this one does.
bool pays(Lending& lending, Taken taken) {
  return lending.pays(0, taken, lending.take_costs(taken));
}

// It has seen enough of each.
constexpr int kEnough = 16;
void lent(Lending& lending, Taken taken, int took_us) {
  for (int i = 0; i < kEnough; ++i) lending.note_private(taken, microseconds(took_us), kBytes);
}
void shared(Lending& lending, Taken taken, int took_us) {
  for (int i = 0; i < kEnough; ++i) lending.note_shared(taken, microseconds(took_us), kBytes);
}
void written(Lending& lending, int took_us) {
  for (int i = 0; i < kEnough; ++i) lending.note_written(false, microseconds(took_us), kBytes);
}

TEST(Lending, TheFirstOnesOfAWaySayNothing) {
  Lending lending = warm();
  written(lending, 200);
  lent(lending, Taken::kCopied, 100);
  for (int i = 1; i < kEnough; ++i) {
    lending.note_shared(Taken::kCopied, microseconds(1000), kBytes);
    EXPECT_FALSE(pays(lending, Taken::kCopied)) << i;
  }
  lending.note_shared(Taken::kCopied, microseconds(1000), kBytes);
  EXPECT_TRUE(pays(lending, Taken::kCopied));
}

TEST(Lending, TakesNoAccountOfMemoryThatIsNew) {
  Lending lending = warm();
  lent(lending, Taken::kCopied, 12);
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "the other way is not known";
  shared(lending, Taken::kCopied, 4);
  written(lending, 4);
  EXPECT_FALSE(pays(lending, Taken::kCopied));
}

TEST(Lending, PaysOnceBothWaysAreKnown) {
  Lending lending = warm();
  written(lending, 4);
  EXPECT_FALSE(pays(lending, Taken::kCopied));
  lent(lending, Taken::kCopied, 5);
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "the other way is not known";
  shared(lending, Taken::kCopied, 4);
  EXPECT_TRUE(pays(lending, Taken::kCopied)) << "the sender copies it, too";
}

TEST(Lending, IsLearnedApartForWhatIsReduced) {
  Lending lending = warm();
  written(lending, 5);
  lent(lending, Taken::kCopied, 5);
  shared(lending, Taken::kCopied, 5);
  lent(lending, Taken::kReduced, 12);
  EXPECT_FALSE(pays(lending, Taken::kReduced)) << "the copies' time is not known of sums";
  shared(lending, Taken::kReduced, 5);
  EXPECT_FALSE(pays(lending, Taken::kReduced));
  EXPECT_TRUE(pays(lending, Taken::kCopied));
}

TEST(Lending, CountsWhatTheSenderTakes) {
  Lending lending = warm();
  lent(lending, Taken::kReduced, 12);
  shared(lending, Taken::kReduced, 5);
  EXPECT_FALSE(pays(lending, Taken::kReduced)) << "nothing is known of writing";
  written(lending, 5);
  EXPECT_FALSE(pays(lending, Taken::kReduced));
  for (int i = 0; i < 4; ++i) written(lending, 13);
  EXPECT_TRUE(pays(lending, Taken::kReduced)) << "12 us against 13 and 5";
}

TEST(Lending, OneThatWasInterruptedSaysLittle) {
  Lending lending = warm();
  written(lending, 5);
  lent(lending, Taken::kCopied, 5);
  shared(lending, Taken::kCopied, 5);
  for (int i = 0; i < 8; ++i) {
    lending.note_private(Taken::kCopied, microseconds(100000), kBytes);
    EXPECT_TRUE(pays(lending, Taken::kCopied)) << i;
  }
}

TEST(Lending, PiecesOfAStreamAreWrittenWhileOthersAreTaken) {
  Lending lending = warm();
  for (int i = 0; i < 64; ++i) {
    lending.note_private(Taken::kCopiedStream, microseconds(6), kBytes);
    lending.note_written(true, microseconds(4), kBytes);
    lending.note_shared(Taken::kCopiedStream, microseconds(4), kBytes);
  }
  EXPECT_FALSE(pays(lending, Taken::kCopiedStream)) << "4 us beside 4 us, against 6";
  for (int i = 0; i < 64; ++i) {
    lending.note_written(true, microseconds(8), kBytes);
    lending.note_shared(Taken::kCopiedStream, microseconds(4), kBytes);
  }
  EXPECT_TRUE(pays(lending, Taken::kCopiedStream)) << "the writer needs 8 us";
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "nothing is known of whole messages";
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
  learn(microseconds(160), microseconds(100));
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "160 us against 200: it keeps the writer, too";
  learn(microseconds(140), microseconds(100));
  EXPECT_TRUE(pays(lending, Taken::kCopied));
  learn(microseconds(165), microseconds(100));
  EXPECT_TRUE(pays(lending, Taken::kCopied)) << "165 us against 200";
  learn(microseconds(190), microseconds(100));
  EXPECT_FALSE(pays(lending, Taken::kCopied));
}

// However they come in turn, each kind is looked at.
TEST(Lending, LooksAtTheClockForEachKind) {
  Lending lending;
  int whole = 0, streamed = 0;
  std::array<int, shm::kTakenWays> takes = {};
  for (int i = 0; i < 64; ++i) {
    whole += lending.write_is_due(false) ? 1 : 0;
    for (int way = 0; way < shm::kTakenWays; ++way) {
      takes[static_cast<std::size_t>(way)] += lending.take_is_due(static_cast<Taken>(way)) ? 1 : 0;
    }
    streamed += lending.write_is_due(true) ? 1 : 0;
  }
  EXPECT_EQ(whole, 16);
  EXPECT_EQ(streamed, 16);
  EXPECT_EQ(takes, (std::array<int, shm::kTakenWays>{16, 16, 16, 16}));
}

// A byte takes few picoseconds: what is learned is finer than that.
TEST(Lending, SeesSmallDifferencesOfFastMemory) {
  Lending lending = warm();
  const auto learn = [&](std::chrono::nanoseconds lent) {
    for (int i = 0; i < 300; ++i) {
      lending.note_written(false, std::chrono::nanoseconds(720), kBytes);
      lending.note_shared(Taken::kCopied, std::chrono::nanoseconds(720), kBytes);
      lending.note_private(Taken::kCopied, lent, kBytes);
    }
  };
  learn(std::chrono::nanoseconds(1040));
  EXPECT_TRUE(pays(lending, Taken::kCopied)) << "1040 ns against 1440";
  learn(std::chrono::nanoseconds(1300));
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "1300 ns against 1440";
}

// Long enough that what is not in the caches at first says little.
TEST(Lending, TriesTheOtherWayWithEachReader) {
  constexpr int kTried = 128, kMessages = 64 * kTried;
  Lending lending(3);
  std::array<int, 3> tried = {};
  for (int message = 0; message < 2 * kMessages; ++message) {
    for (const int reader : {-1, 0, 2}) {
      if (reader == 2 && message % 256 != 0) continue;
      const std::size_t place = reader == 2 ? 2 : static_cast<std::size_t>(reader + 1);
      if (lending.tries(reader, Taken::kCopied)) ++tried[place];
      lending.note_sent(reader, Taken::kCopied);
    }
  }
  EXPECT_EQ(tried, (std::array<int, 3>{2 * kTried, 2 * kTried, 2 * kMessages / 256}));
  EXPECT_TRUE(lending.tries(0, Taken::kReduced)) << "it has sent none";
}

TEST(Lending, WhatIsColdAtFirstSaysLittle) {
  Lending lending = warm();
  const auto learn = [&](int messages, microseconds lent, microseconds shared) {
    for (int i = 0; i < messages; ++i) {
      lending.note_private(Taken::kCopied, lent, kBytes);
      lending.note_written(false, shared, kBytes);
      lending.note_shared(Taken::kCopied, shared, kBytes);
    }
  };
  learn(64, microseconds(500), microseconds(200));
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "500 us against 400";
  learn(8, microseconds(500), microseconds(400));
  learn(24, microseconds(500), microseconds(200));
  EXPECT_FALSE(pays(lending, Taken::kCopied)) << "as before";
  learn(64, microseconds(500), microseconds(400));
  EXPECT_TRUE(pays(lending, Taken::kCopied)) << "500 us against 800: not for some time only";
}

// A rank that only takes knows nothing of writing, nor one that only writes of taking.
TEST(Lending, IsDecidedByWhoWrites) {
  Lending writer = warm(2), reader = warm(2);
  for (int i = 0; i < 64; ++i) {
    writer.note_written(true, microseconds(8), kBytes);
    reader.note_shared(Taken::kCopiedStream, microseconds(2), kBytes);
    reader.note_private(Taken::kCopiedStream, microseconds(6), kBytes);
  }
  const shm::TakeCosts costs = reader.take_costs(Taken::kCopiedStream);
  EXPECT_TRUE(writer.pays(1, Taken::kCopiedStream, costs)) << "writing takes 8 us";
  EXPECT_FALSE(writer.pays(0, Taken::kCopiedStream, {})) << "the other reader has told nothing";
  EXPECT_FALSE(reader.pays(0, Taken::kCopiedStream, costs)) << "it has written none";
  EXPECT_FALSE(writer.pays(1, Taken::kReducedStream, reader.take_costs(Taken::kReducedStream)));
}

TEST(Lending, TellsWhatIsNews) {
  using Costs = shm::TakeCosts;
  const Costs told{.shared_fs = 64000, .lent_fs = 32000};
  EXPECT_FALSE(Lending::is_news(told, told));
  EXPECT_FALSE(Lending::is_news({.shared_fs = 65000, .lent_fs = 31500}, told));
  EXPECT_TRUE(Lending::is_news({.shared_fs = 70000, .lent_fs = 32000}, told));
  EXPECT_TRUE(Lending::is_news({.shared_fs = 64000, .lent_fs = 28000}, told));
  EXPECT_TRUE(Lending::is_news({.shared_fs = 1, .lent_fs = 0}, {}));
  EXPECT_FALSE(Lending::is_news({}, {}));
}

}  // namespace
}  // namespace carillon
