// SPDX-License-Identifier: Apache-2.0
//
// Which way messages within a node had better go: what is learned of it.
#include "engine/message_ways.h"

#include <gtest/gtest.h>

#include <array>

namespace carillon {
namespace {

using shm::Taken;
using shm::Way;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::int64_t kBytes = 65536;
// But kHanded.
constexpr MessageWays::Open kAllOpen{.uncached = true, .lent = true};

// It has seen enough of each.
constexpr int kEnough = 16;

// What this process learns of a way: messages that it writes, and those that it takes.
void learn(MessageWays& ways, Taken taken, Way way, nanoseconds written, nanoseconds took,
           int messages = kEnough) {
  for (int i = 0; i < messages; ++i) {
    if (way != Way::kPrivate) ways.note_written(taken, way, written, kBytes);
    ways.note_taken(taken, way, took, kBytes);
  }
}
void learn_lent(MessageWays& ways, Taken taken, nanoseconds took, int messages = kEnough) {
  learn(ways, taken, Way::kPrivate, {}, took, messages);
}

shm::TakeCosts costs_of(const MessageWays& ways, Taken taken) {
  return {ways.take_cost(taken, Way::kCached), ways.take_cost(taken, Way::kUncached),
          ways.take_cost(taken, Way::kPrivate), ways.take_cost(taken, Way::kHanded)};
}
// Of messages to a rank that learns what this one does.
Way preferred(MessageWays& ways, Taken taken, MessageWays::Open open = kAllOpen) {
  return ways.preferred(0, taken, costs_of(ways, taken), open);
}

TEST(MessageWays, PreferAnotherOnceBothAreKnown) {
  for (const bool lent : {false, true}) {
    const Way other = lent ? Way::kPrivate : Way::kUncached;
    MessageWays ways(1);
    learn(ways, Taken::kCopied, Way::kCached, microseconds(8), microseconds(8));
    learn(ways, Taken::kCopied, other, microseconds(2), microseconds(3), kEnough - 1);
    EXPECT_EQ(preferred(ways, Taken::kCopied), Way::kCached);
    learn(ways, Taken::kCopied, other, microseconds(2), microseconds(3), 1);
    EXPECT_EQ(preferred(ways, Taken::kCopied), other);
    EXPECT_EQ(preferred(ways, Taken::kCopied, {.uncached = lent, .lent = !lent}), Way::kCached)
        << "it is not open";
    MessageWays unknown(1);
    learn(unknown, Taken::kCopied, other, microseconds(2), microseconds(3));
    EXPECT_EQ(preferred(unknown, Taken::kCopied), Way::kCached) << "how that is, is not known";
  }
}

TEST(MessageWays, TheBestOfThreeIsPreferred) {
  const auto best = [](int cached_us, int uncached_us, int lent_us) {
    MessageWays ways(1);
    learn(ways, Taken::kReduced, Way::kCached, microseconds(cached_us), microseconds(cached_us));
    learn(ways, Taken::kReduced, Way::kUncached, microseconds(uncached_us),
          microseconds(uncached_us));
    learn_lent(ways, Taken::kReduced, microseconds(lent_us));
    return preferred(ways, Taken::kReduced);
  };
  EXPECT_EQ(best(3, 6, 9), Way::kCached);
  EXPECT_EQ(best(15, 6, 15), Way::kUncached);
  EXPECT_EQ(best(15, 6, 5), Way::kPrivate);
  EXPECT_EQ(best(3, 6, 3), Way::kPrivate) << "3 us against 3 and 3";
}

TEST(MessageWays, CountWritingAndTaking) {
  MessageWays ways(1);
  learn_lent(ways, Taken::kReduced, microseconds(11));
  for (int i = 0; i < kEnough; ++i) {
    ways.note_taken(Taken::kReduced, Way::kCached, microseconds(5), kBytes);
  }
  EXPECT_EQ(preferred(ways, Taken::kReduced), Way::kCached) << "nothing is known of writing";
  learn(ways, Taken::kReduced, Way::kCached, microseconds(5), microseconds(5));
  EXPECT_EQ(preferred(ways, Taken::kReduced), Way::kCached) << "11 us against 5 and 5";
  learn(ways, Taken::kReduced, Way::kCached, microseconds(13), microseconds(5), 64);
  EXPECT_EQ(preferred(ways, Taken::kReduced), Way::kPrivate) << "11 us against 13 and 5";
}

TEST(MessageWays, OfAStreamReadersTellAll) {
  MessageWays ways(1);
  learn(ways, Taken::kCopiedStream, Way::kCached, microseconds(100), microseconds(4));
  learn_lent(ways, Taken::kCopiedStream, microseconds(6));
  EXPECT_EQ(preferred(ways, Taken::kCopiedStream), Way::kCached)
      << "how long writing takes is in what they tell";
  EXPECT_FALSE(ways.write_is_due(Taken::kCopiedStream, Way::kCached));
  learn(ways, Taken::kCopiedStream, Way::kCached, microseconds(1), microseconds(8), 64);
  EXPECT_EQ(preferred(ways, Taken::kCopiedStream), Way::kPrivate);
}

TEST(MessageWays, AreLearnedApartForEachKind) {
  MessageWays ways(1);
  learn(ways, Taken::kCopied, Way::kCached, microseconds(8), microseconds(8));
  learn(ways, Taken::kCopied, Way::kUncached, microseconds(2), microseconds(2));
  EXPECT_EQ(preferred(ways, Taken::kCopied), Way::kUncached);
  for (const Taken other :
       {Taken::kReduced, Taken::kCopiedStream, Taken::kReducedStream, Taken::kShortCopied,
        Taken::kShortReduced, Taken::kPiecesCopied, Taken::kPiecesReduced}) {
    EXPECT_EQ(preferred(ways, other), Way::kCached) << static_cast<int>(other);
  }
}

TEST(MessageWays, OneThatWasInterruptedSaysLittle) {
  MessageWays ways(1);
  learn(ways, Taken::kCopied, Way::kCached, microseconds(5), microseconds(5));
  learn_lent(ways, Taken::kCopied, microseconds(4));
  for (int i = 0; i < 8; ++i) {
    learn_lent(ways, Taken::kCopied, microseconds(100000), 1);
    EXPECT_EQ(preferred(ways, Taken::kCopied), Way::kPrivate) << i;
  }
}

TEST(MessageWays, StayWithWhatIsHardlyWorse) {
  MessageWays ways(1);
  const auto lent = [&](microseconds took, microseconds shared) {
    learn_lent(ways, Taken::kCopied, took, 64);
    learn(ways, Taken::kCopied, Way::kCached, shared, shared, 64);
    return preferred(ways, Taken::kCopied) == Way::kPrivate;
  };
  EXPECT_FALSE(lent(microseconds(160), microseconds(100))) << "against 200: it keeps the writer";
  EXPECT_TRUE(lent(microseconds(130), microseconds(100)));
  EXPECT_TRUE(lent(microseconds(155), microseconds(100)));
  EXPECT_FALSE(lent(microseconds(175), microseconds(100)));
  const auto uncached = [&](microseconds past, microseconds through) {
    learn(ways, Taken::kReduced, Way::kUncached, past, past, 64);
    learn(ways, Taken::kReduced, Way::kCached, through, through, 64);
    return preferred(ways, Taken::kReduced) == Way::kUncached;
  };
  EXPECT_FALSE(uncached(microseconds(95), microseconds(100)));
  EXPECT_TRUE(uncached(microseconds(80), microseconds(100)));
  EXPECT_TRUE(uncached(microseconds(95), microseconds(100)));
  EXPECT_FALSE(uncached(microseconds(110), microseconds(100)));
}

// However they come in turn, each kind is looked at: all of what is not known, then some.
TEST(MessageWays, LookAtTheClockForEachKind) {
  MessageWays ways;
  EXPECT_TRUE(ways.take_is_due(Taken::kCopied, Way::kCached));
  std::array<int, shm::kTakenKinds> takes = {}, writes = {};
  for (std::size_t kind = 0; kind < shm::kTakenKinds; ++kind) {
    learn(ways, static_cast<Taken>(kind), Way::kCached, microseconds(5), microseconds(5));
  }
  for (int i = 0; i < 64; ++i) {
    for (std::size_t kind = 0; kind < shm::kTakenKinds; ++kind) {
      const auto taken = static_cast<Taken>(kind);
      takes[kind] += ways.take_is_due(taken, Way::kCached) ? 1 : 0;
      writes[kind] += ways.write_is_due(taken, Way::kCached) ? 1 : 0;
      EXPECT_TRUE(ways.take_is_due(taken, Way::kUncached)) << "nothing is known of it";
    }
  }
  for (std::size_t kind = 0; kind < shm::kTakenKinds; ++kind) {
    const auto taken = static_cast<Taken>(kind);
    const bool is_short = taken == Taken::kShortCopied || taken == Taken::kShortReduced;
    EXPECT_NEAR(takes[kind], is_short ? 4 : 16, 1) << kind;
  }
  EXPECT_NEAR(writes[0] + writes[1], 32, 1) << "they are written alike";
  EXPECT_NEAR(writes[4] + writes[5], 8, 1);
}

// A byte takes few picoseconds: what is learned is finer than that.
TEST(MessageWays, SeeSmallDifferencesOfFastMemory) {
  MessageWays ways(1);
  learn(ways, Taken::kCopied, Way::kCached, nanoseconds(720), nanoseconds(720), 300);
  learn_lent(ways, Taken::kCopied, nanoseconds(940), 300);
  EXPECT_EQ(preferred(ways, Taken::kCopied), Way::kPrivate) << "940 ns against 1440";
  learn_lent(ways, Taken::kCopied, nanoseconds(1300), 300);
  EXPECT_EQ(preferred(ways, Taken::kCopied), Way::kCached) << "1300 ns against 1440";
}

// How many of so many messages to the reader go each way.
std::array<int, shm::kWays> sent(MessageWays& ways, int reader, Taken taken, Way preferred,
                                 int messages, MessageWays::Open open = kAllOpen) {
  std::array<int, shm::kWays> sent = {};
  for (int i = 0; i < messages; ++i) {
    const MessageWays::Choice choice = ways.next(reader, taken, preferred, open);
    ++sent[static_cast<std::size_t>(choice.way)];
    ways.note_sent(reader, taken, choice, open);
  }
  return sent;
}

constexpr int kTurn = 32;  // long enough that what is not in the caches at first says little
using Sent = std::array<int, shm::kWays>;

TEST(MessageWays, TryOthersOftenUntilTheyAreKnown) {
  MessageWays ways(2);
  EXPECT_EQ(sent(ways, 1, Taken::kCopied, Way::kCached, 8 * kTurn),
            (Sent{6 * kTurn, kTurn, kTurn}));
  EXPECT_EQ(sent(ways, 0, Taken::kCopied, Way::kCached, 8 * kTurn, {.uncached = true}),
            (Sent{7 * kTurn, kTurn, 0}))
      << "each reader is tried for itself, and only ways that are open";
  EXPECT_EQ(ways.next(0, Taken::kReduced, Way::kCached, kAllOpen).way, Way::kCached)
      << "and each kind: the first ones are cold, and go as preferred";
}

TEST(MessageWays, TryOthersSeldomWhenTheyAreKnown) {
  MessageWays ways(1);
  learn(ways, Taken::kCopied, Way::kCached, microseconds(4), microseconds(4));
  learn(ways, Taken::kCopied, Way::kUncached, microseconds(5), microseconds(5));
  learn_lent(ways, Taken::kCopied, microseconds(20));
  const Way best = preferred(ways, Taken::kCopied);
  ASSERT_EQ(best, Way::kCached);
  EXPECT_EQ(sent(ways, 0, Taken::kCopied, best, 512 * kTurn),
            (Sent{(512 - 8 - 7) * kTurn, 8 * kTurn, 7 * kTurn}))
      << "more and more seldom";
  EXPECT_EQ(sent(ways, 0, Taken::kCopied, best, 512 * kTurn),
            (Sent{(512 - 4 - 1) * kTurn, 4 * kTurn, kTurn}))
      << "what is much worse is tried less";
  EXPECT_EQ(sent(ways, -1, Taken::kCopied, best, 512 * kTurn),
            (Sent{(512 - 8 - 8) * kTurn, 8 * kTurn, 8 * kTurn}))
      << "of several readers nothing is known";
}

TEST(MessageWays, StandForAFewMessages) {
  MessageWays ways(1);
  for (int i = 0; i < 2 * kTurn; ++i) {
    const Way way = i < kTurn ? Way::kUncached : Way::kPrivate;
    const auto standing = ways.standing(0, Taken::kCopied, kAllOpen);
    ASSERT_EQ(standing.has_value(), i % 16 != 0) << i;
    if (standing) {
      ASSERT_EQ(standing->way, way);
      ASSERT_FALSE(ways.standing(0, Taken::kCopied, {}).has_value()) << "it is not open";
    }
    ways.note_sent(0, Taken::kCopied, {.way = way}, kAllOpen);
  }
}

// Others that go the way of the first are messages, too: how others are is learned as soon.
TEST(MessageWays, TurnsCountThoseThatFollow) {
  MessageWays ways(1);
  int tried = 0;
  for (int i = 0; i < 8 * kTurn / 16; ++i) {
    const MessageWays::Choice choice = ways.next(0, Taken::kPiecesCopied, Way::kPrivate, kAllOpen);
    tried += choice.way == Way::kUncached ? 1 : 0;
    ways.note_sent(0, Taken::kPiecesCopied, choice, kAllOpen);
    for (int piece = 1; piece < 16; ++piece) ways.note_follows(0, Taken::kPiecesCopied);
  }
  EXPECT_EQ(tried, kTurn / 16);
}

// Whatever number the first of them has: it is decided anew when so many have gone.
TEST(MessageWays, NothingStandsForEverWhereOthersFollow) {
  for (const int before : {0, 4, 15}) {
    MessageWays ways(1);
    for (int i = 0; i < before; ++i) {
      ways.note_sent(0, Taken::kPiecesCopied, {.way = Way::kHanded}, kAllOpen);
    }
    for (int call = 0; call < 8; ++call) {
      EXPECT_EQ(ways.standing(0, Taken::kPiecesCopied, kAllOpen).has_value(),
                call == 0 && before != 0)
          << call << " after " << before;
      ways.note_sent(0, Taken::kPiecesCopied, {.way = Way::kPrivate}, kAllOpen);
      for (int piece = 1; piece < 16; ++piece) ways.note_follows(0, Taken::kPiecesCopied);
    }
  }
}

// Messages that may be lent, and such that may not, in turn: each that may be goes the way that is
// decided for it.
TEST(MessageWays, OfOtherMessagesNothingStands) {
  MessageWays ways(1);
  constexpr MessageWays::Open kShared{.uncached = true};
  for (int i = 0; i < 64; ++i) {
    const bool lends = i % 2 == 1;
    const MessageWays::Open open = lends ? kAllOpen : kShared;
    EXPECT_FALSE(ways.standing(0, Taken::kCopied, open).has_value()) << i;
    ways.note_sent(0, Taken::kCopied, {.way = lends ? Way::kPrivate : Way::kCached}, open);
  }
}

// All channels with several readers are counted together; what is good for those of one need not be
// for those of another.
TEST(MessageWays, OfMessagesToOtherReadersNothingStands) {
  MessageWays ways(5);
  for (int i = 0; i < 64; ++i) {
    const bool first = i % 2 == 0;
    const MessageWays::Open open{.lent = true,
                                 .readers = first ? std::array{1, 2} : std::array{3, 4}};
    const Way best = first ? Way::kPrivate : Way::kCached;
    const auto standing = ways.standing(-1, Taken::kCopied, open);
    const MessageWays::Choice choice = standing.value_or(MessageWays::Choice{best});
    EXPECT_EQ(choice.way, best) << i;
    ways.note_sent(-1, Taken::kCopied, choice, open);
  }
}

// Together only when it is known what the copy costs alone, and short ones never.
TEST(MessageWays, WhatACopyCostsAloneIsSeenNowAndThen) {
  MessageWays ways(1);
  for (int i = 0; i < kEnough; ++i) {
    EXPECT_FALSE(ways.next_together(Taken::kCopied, kBytes));
    ASSERT_TRUE(ways.copy_is_due(Taken::kCopied, kBytes));
    ways.note_copied(Taken::kCopied, microseconds(3), kBytes);
  }
  int together = 0;
  for (int i = 0; i < 256; ++i) together += ways.next_together(Taken::kCopied, kBytes) ? 1 : 0;
  EXPECT_EQ(together, 252);
  EXPECT_FALSE(ways.next_together(Taken::kPiecesCopied, kBytes)) << "of those it is not known";
  EXPECT_FALSE(ways.next_together(Taken::kCopied, 2048));
  EXPECT_FALSE(ways.copy_is_due(Taken::kCopied, 2048));
}

// The copy has to be made whichever way the message goes: it is no part of what one way costs.
TEST(MessageWays, WhatIsWrittenTogetherCountsWithoutTheCopy) {
  const auto best = [](int together_us) {
    MessageWays ways(1);
    for (int i = 0; i < kEnough; ++i) {
      ways.note_copied(Taken::kCopied, microseconds(4), kBytes);
      ways.note_together(Taken::kCopied, Way::kCached, microseconds(together_us), kBytes);
      ways.note_taken(Taken::kCopied, Way::kCached, microseconds(4), kBytes);
    }
    learn_lent(ways, Taken::kCopied, microseconds(6));
    return preferred(ways, Taken::kCopied);
  };
  EXPECT_EQ(best(5), Way::kCached) << "1 and 4 us against 6";
  EXPECT_EQ(best(12), Way::kPrivate) << "8 and 4 us against 6";
  EXPECT_EQ(best(3), Way::kCached) << "never for nothing";
}

TEST(MessageWays, OthersThatNeverBecomeKnownAreTriedSeldom) {
  MessageWays ways(1);
  sent(ways, 0, Taken::kCopied, Way::kCached, 2048 * kTurn);
  EXPECT_EQ(sent(ways, 0, Taken::kCopied, Way::kCached, 1024 * kTurn),
            (Sent{(1024 - 8 - 8) * kTurn, 8 * kTurn, 8 * kTurn}));
}

// Messages of two writers come in turn, each by another way.
TEST(MessageWays, LookAtTheClockForEachWay) {
  MessageWays ways;
  constexpr std::array kBoth = {Way::kCached, Way::kUncached};
  for (const Way way : kBoth) {
    learn(ways, Taken::kCopied, way, microseconds(5), microseconds(5));
  }
  std::array<int, 2> takes = {}, writes = {};
  for (int i = 0; i < 128; ++i) {
    for (std::size_t way = 0; way < kBoth.size(); ++way) {
      takes[way] += ways.take_is_due(Taken::kCopied, kBoth[way]) ? 1 : 0;
      writes[way] += ways.write_is_due(Taken::kCopied, kBoth[way]) ? 1 : 0;
    }
  }
  for (const int due : {takes[0], takes[1], writes[0], writes[1]}) EXPECT_NEAR(due, 32, 3);
}

// Pages are made as the pool is used for the first time, its parts for short and long ones apart.
TEST(MessageWays, TheFirstPassThroughThePoolSaysNothing) {
  constexpr std::int64_t kShort = 4096;
  MessageWays ways(2, 8 * kShort, 16 * kBytes);
  for (int i = 0; i < 16; ++i) {
    ways.note_written(Taken::kCopied, Way::kCached, microseconds(1000), kBytes);
    ways.note_taken(Taken::kCopied, Way::kCached, microseconds(1000), kBytes);
    if (i >= 8) continue;
    ways.note_written(Taken::kShortCopied, Way::kCached, microseconds(1000), kShort);
    ways.note_taken(Taken::kShortCopied, Way::kCached, microseconds(1000), kShort);
  }
  learn(ways, Taken::kCopied, Way::kCached, microseconds(4), microseconds(4));
  EXPECT_EQ(ways.take_cost(Taken::kCopied, Way::kCached), 4'000'000'000 / kBytes);
  for (int i = 0; i < kEnough; ++i) {
    ways.note_taken(Taken::kShortCopied, Way::kCached, nanoseconds(400), kShort);
  }
  EXPECT_EQ(ways.take_cost(Taken::kShortCopied, Way::kCached), 400'000'000 / kShort);
}

// A rank that only takes knows nothing of writing, nor one that only writes of taking.
TEST(MessageWays, AreDecidedByWhoWrites) {
  MessageWays writer(2), reader(2);
  for (int i = 0; i < kEnough; ++i) {
    writer.note_written(Taken::kCopied, Way::kCached, microseconds(8), kBytes);
    reader.note_taken(Taken::kCopied, Way::kCached, microseconds(2), kBytes);
    reader.note_taken(Taken::kCopied, Way::kPrivate, microseconds(6), kBytes);
  }
  const shm::TakeCosts costs = costs_of(reader, Taken::kCopied);
  EXPECT_EQ(writer.preferred(1, Taken::kCopied, costs, kAllOpen), Way::kPrivate);
  EXPECT_EQ(writer.preferred(0, Taken::kCopied, {}, kAllOpen), Way::kCached)
      << "the other reader has told nothing";
  EXPECT_EQ(reader.preferred(0, Taken::kCopied, costs, kAllOpen), Way::kCached)
      << "it has written none";
}

constexpr MessageWays::Open kHands{.uncached = true, .lent = true, .handed = true};

// What is known of a way after its first messages, which find cold memory.
void learn_handed(MessageWays& ways, Taken taken, nanoseconds each) {
  learn(ways, taken, Way::kHanded, microseconds(1000), microseconds(1000), 16);
  learn(ways, taken, Way::kHanded, each, each);
}

TEST(MessageWays, ChunksAreHandedOverUntilThatIsKnownToBeWorse) {
  MessageWays ways(1);
  EXPECT_EQ(preferred(ways, Taken::kCopied, kHands), Way::kHanded);
  EXPECT_EQ(ways.next(0, Taken::kCopied, Way::kHanded, kHands).way, Way::kHanded)
      << "no trial comes first";
  EXPECT_EQ(preferred(ways, Taken::kCopied), Way::kCached) << "it is not open";
  learn(ways, Taken::kCopied, Way::kCached, microseconds(5), microseconds(5));
  EXPECT_EQ(preferred(ways, Taken::kCopied, kHands), Way::kHanded);
  learn_handed(ways, Taken::kCopied, microseconds(4));
  EXPECT_EQ(preferred(ways, Taken::kCopied, kHands), Way::kHanded);
  learn(ways, Taken::kCopied, Way::kHanded, microseconds(6), microseconds(6), 64);
  EXPECT_EQ(preferred(ways, Taken::kCopied, kHands), Way::kCached);
  learn(ways, Taken::kCopied, Way::kUncached, microseconds(2), microseconds(2));
  EXPECT_EQ(preferred(ways, Taken::kCopied, kHands), Way::kUncached);
}

// One that would have chunks handed over has them so if either rank would.
TEST(MessageWays, ChunksAreHandedOverByInvitation) {
  MessageWays ways(1);
  learn(ways, Taken::kCopied, Way::kCached, microseconds(4), microseconds(4));
  learn_handed(ways, Taken::kCopied, microseconds(8));
  MessageWays::Open invited = kHands;
  invited.invited = true;
  EXPECT_EQ(preferred(ways, Taken::kCopied, kHands), Way::kCached);
  ASSERT_EQ(preferred(ways, Taken::kCopied, invited), Way::kHanded);
  const MessageWays::Choice reply = ways.next(0, Taken::kCopied, Way::kHanded, invited);
  EXPECT_EQ(reply.way, Way::kHanded);
  EXPECT_FALSE(reply.invites) << "or they would go to and fro for ever";
  invited.handed = false;
  EXPECT_EQ(preferred(ways, Taken::kCopied, invited), Way::kCached) << "there are too many there";
}

// Who tries it invites, too: alone it is not what it is with both.
TEST(MessageWays, ATrialOfHandingOverInvites) {
  MessageWays ways(1);
  learn(ways, Taken::kCopied, Way::kCached, microseconds(4), microseconds(4));
  learn_handed(ways, Taken::kCopied, microseconds(8));
  const Way best = preferred(ways, Taken::kCopied, kHands);
  ASSERT_EQ(best, Way::kCached);
  int trials = 0;
  for (int i = 0; i < 512 * kTurn; ++i) {
    const MessageWays::Choice choice = ways.next(0, Taken::kCopied, best, kHands);
    ASSERT_EQ(choice.invites, choice.way == Way::kHanded);
    trials += choice.invites ? 1 : 0;
    ways.note_sent(0, Taken::kCopied, choice, kHands);
  }
  EXPECT_GT(trials, 0);
}

// Both ranks read: that one is kept by the other costs nothing more.
TEST(MessageWays, WhoReadsItselfIsNotKeptByAReader) {
  const auto lent = [](MessageWays::Open open) {
    MessageWays ways(1);
    learn(ways, Taken::kCopied, Way::kCached, microseconds(5), microseconds(5));
    learn_handed(ways, Taken::kCopied, microseconds(5));
    learn_lent(ways, Taken::kCopied, microseconds(9));
    return preferred(ways, Taken::kCopied, open) == Way::kPrivate;
  };
  EXPECT_TRUE(lent(kHands));
  EXPECT_FALSE(lent(kAllOpen));
}

TEST(MessageWays, TellWhatIsNews) {
  EXPECT_FALSE(MessageWays::is_news(64000, 64000));
  EXPECT_FALSE(MessageWays::is_news(65000, 64000));
  EXPECT_TRUE(MessageWays::is_news(70000, 64000));
  EXPECT_TRUE(MessageWays::is_news(60000, 64000));
  EXPECT_TRUE(MessageWays::is_news(1, 0));
  EXPECT_FALSE(MessageWays::is_news(0, 0));
}

}  // namespace
}  // namespace carillon
