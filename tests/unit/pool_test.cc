// SPDX-License-Identifier: Apache-2.0
//
// Where messages go in a rank's pool: however short they are, the whole pool passes before bytes of
// it are written again. And chunks that go to the reader with their message: each has one owner.
#include "transport/shm/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "schedule/problem.h"

namespace carillon::shm {
namespace {

constexpr std::uint64_t kChunkBytes = 65536;
constexpr PoolSizes kSizes{.small_bytes = 1 << 20, .large_bytes = 2 << 20};

class PoolTest : public testing::Test {
 protected:
  void SetUp() override {
    auto segment = Segment::create(2, {.control_bytes = 1 << 20,
                                       .pool = kSizes,
                                       .reserve_bytes = 16 << 20,
                                       .heap_bytes = 1 << 20,
                                       .program_bytes = 0});
    ASSERT_TRUE(segment.ok()) << segment.status().to_string();
    segment_ = segment.value();
  }
  std::shared_ptr<Segment> segment_;
};

class PoolPlaces : public PoolTest, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(PoolPlaces, PassThroughAllOfIt) {
  const std::uint64_t bytes = GetParam();
  Pool pool(*segment_, 1, kChunkBytes, 1, 0);
  const std::uint64_t begin = segment_->pool(1), end = segment_->reserve(1);
  const std::uint64_t first = pool.next_offset(bytes);
  std::set<std::uint64_t> places;
  std::uint64_t next = first;
  do {
    const std::uint64_t place = pool.take(bytes, {});
    ASSERT_EQ(place, next) << "it was announced so";
    ASSERT_GE(place, begin);
    ASSERT_LE(place + bytes, end);
    ASSERT_EQ(place % kCacheLine, 0u) << "elements are read there";
    const auto after = places.insert(place).first;
    if (after != places.begin()) {
      ASSERT_LE(*std::prev(after) + bytes, place);
    }
    if (std::next(after) != places.end()) {
      ASSERT_LE(place + bytes, *std::next(after));
    }
    next = pool.next_offset(bytes);
  } while (next != first);
  const std::uint64_t share = bytes <= kSmallBytes ? kSizes.small_bytes : kSizes.large_bytes;
  EXPECT_GE(places.size() * bytes, share / 2) << "little of it is never used";
}

INSTANTIATE_TEST_SUITE_P(Bytes, PoolPlaces,
                         testing::Values(57, 64, 1000, 1024, 4096, 5000, 8192, 8193, 16384, 24000,
                                         32768, 65535, kChunkBytes));

// A chunk may have been begun by messages of other lengths.
TEST_F(PoolTest, PlacesAreWithinTheirChunk) {
  Pool pool(*segment_, 0, kChunkBytes, 1, 0);
  const std::uint64_t chunks = segment_->pool(0) + kSizes.small_bytes;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = 8193 + i * 7919 % (kChunkBytes - 8192);
    const std::uint64_t place = pool.take(bytes, {}) - chunks;
    ASSERT_EQ(place / kChunkBytes, (place + bytes - 1) / kChunkBytes) << bytes;
  }
}

// Of so many long puts to each other rank of its node a rank may hear only when these have
// completed the collective, which they do when they have all of its own: more would hang.
TEST(Reserve, IsEnoughForAnExchangeOfAllRanks) {
  const auto chunk = static_cast<std::uint64_t>(Limits().stream_bytes());
  for (const std::uint64_t ranks : {1, 2, 64, 130, 511, 512, 1000, 4096}) {
    for (const std::uint64_t bytes : {chunk, 8 * chunk}) {
      const std::uint64_t reserve = SegmentSizes::enough_reserve(ranks, bytes);
      EXPECT_GE(reserve, (ranks - 1) * kWindow * bytes);
      EXPECT_GE(reserve, SegmentSizes().reserve_bytes);
    }
  }
}

// Of messages that nobody reads; those of the oldest collective are sure of room.
TEST_F(PoolTest, SaysThatItCanGrowNoMore) {
  const AreaLayout layout{.size = 2, .has_domains = false};
  std::vector<Member> members;
  for (int rank = 0; rank < 2; ++rank) {
    const std::uint64_t area = segment_->control(rank);
    members.push_back({.node_rank = rank,
                       .area = {.area = area, .pair_lines = area + layout.bytes()},
                       .generation = 1});
    Endpoint::open_area(*segment_, area, 1);
  }
  Endpoint endpoint(*segment_, members, 0, layout);
  Pool pool(*segment_, 0, kChunkBytes, 1, 0);
  Pool::Letter letter{.endpoint = &endpoint, .peer = 1, .number = 0, .collective = 1};
  int taken = 0;
  for (; pool.take(kChunkBytes, letter) != 0; ++taken) ++letter.number;
  EXPECT_TRUE(pool.is_used_up());
  EXPECT_GE(taken * kChunkBytes, kSizes.large_bytes + (15 << 20));
  EXPECT_EQ(pool.bytes(), kSizes.small_bytes + static_cast<std::uint64_t>(taken) * kChunkBytes);
  int letters = 0;
  pool.each_letter([&](const Pool::Letter& each) {
    EXPECT_EQ(each.collective, 1u);
    ++letters;
  });
  EXPECT_EQ(letters, taken);
  // Later collectives wait for others in any case.
  letter.collective = 2;
  EXPECT_EQ(pool.take(kChunkBytes, letter), 0u);
  EXPECT_FALSE(pool.is_used_up());
}

// Two ranks that write to each other, and a third that only reads.
class HandingOver : public PoolTest {
 protected:
  static constexpr int kMost = 5;

  Pool& pool(int rank) {
    auto& one = pools_[static_cast<std::size_t>(rank)];
    if (!one) one.emplace(*segment_, rank, kChunkBytes, 1, kMost);
    return *one;
  }
  // A message from one rank to the other, whose chunk stays with the reader.
  Pool::Handed hand(int writer, int reader, std::uint64_t bytes) {
    EXPECT_TRUE(pool(writer).can_hand(bytes, reader));
    const Pool::Handed chunk = pool(writer).hand(bytes, reader);
    EXPECT_GE(chunk.bytes, bytes);
    EXPECT_EQ(chunk.offset % kCacheLine, 0u);
    return chunk;
  }
  // Of those that a pool takes for its own messages: all of it and of what came there.
  std::set<std::uint64_t> own(Pool& pool, std::uint64_t bytes) {
    std::set<std::uint64_t> chunks;
    while (chunks.insert(pool.take(bytes, {})).second) continue;
    return chunks;
  }
  std::array<std::optional<Pool>, 2> pools_;
};

TEST_F(HandingOver, WhoReadsWritesThere) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1024}, kSmallBytes, kSmallBytes + 1, kChunkBytes}) {
    Pool::Handed there = hand(0, 1, bytes);
    pool(1).keep(0, there);
    for (int i = 0; i < 100; ++i) {
      const Pool::Handed back = hand(1, 0, bytes);
      EXPECT_EQ(back.offset, there.offset);
      pool(0).keep(1, back);
      there = hand(0, 1, bytes);
      EXPECT_EQ(there.offset, back.offset);
      pool(1).keep(0, there);
    }
  }
}

TEST_F(HandingOver, TheOneThatCameLastGoesFirst) {
  const Pool::Handed first = hand(0, 1, kChunkBytes), second = hand(0, 1, kChunkBytes);
  pool(1).keep(0, first);
  pool(1).keep(0, second);
  EXPECT_EQ(hand(1, 0, kChunkBytes).offset, second.offset);
  EXPECT_EQ(hand(1, 0, kChunkBytes).offset, first.offset);
}

TEST_F(HandingOver, OnlySoManyGoToWhoGivesNoneBack) {
  for (const std::uint64_t bytes : {kSmallBytes, kChunkBytes}) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(hand(0, 1, bytes).bytes, bytes);
    EXPECT_FALSE(pool(0).can_hand(bytes, 1));
    EXPECT_TRUE(pool(0).can_hand(bytes, 0)) << "each rank is counted for itself";
  }
}

TEST_F(HandingOver, MoreGoToWhoGivesSomeBack) {
  for (int returned = 0; returned < 10; ++returned) {
    int gone = 0;
    while (pool(0).can_hand(kChunkBytes, 1)) {
      pool(1).keep(0, hand(0, 1, kChunkBytes));
      ++gone;
    }
    EXPECT_EQ(gone, returned <= kMost - 2 ? 2 : 1) << returned;
    pool(0).keep(1, hand(1, 0, kChunkBytes));
  }
}

// Two ranks send as much to each other, now the one before it gets anything and now the other: once
// there are enough the same chunks go to and fro.
TEST_F(HandingOver, ChunksStayWithTheTwoWhoeverIsAhead) {
  constexpr int kMessages = kMost, kEnough = 64;
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 10 * kEnough; ++round) {
    const int ahead = round * 7 % 5 % 2;
    for (const int writer : {ahead, 1 - ahead}) {
      for (int i = 0; i < kMessages && pool(writer).can_hand(kChunkBytes, 1 - writer); ++i) {
        const Pool::Handed chunk = hand(writer, 1 - writer, kChunkBytes);
        const bool is_new = seen.insert(chunk.offset).second;
        ASSERT_FALSE(is_new && round > kEnough) << round;
        ASSERT_TRUE(i + 1 == kMessages || round < kEnough ||
                    pool(writer).can_hand(kChunkBytes, 1 - writer))
            << round;
        pool(1 - writer).keep(writer, chunk);
      }
    }
  }
}

// However unevenly messages go to and fro, for a while these, for a while those.
TEST_F(HandingOver, EveryChunkHasOneOwner) {
  struct Unread {
    int reader;
    Pool::Handed chunk;
  };
  std::vector<Unread> unread;
  std::uint64_t random = 1;
  const auto next = [&](std::uint64_t below) {
    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33U) % below;
  };
  for (std::uint64_t i = 0; i < 40000; ++i) {
    // Most are of one rank's, and long or short, as have not been most for as long.
    const std::uint64_t kind = next(4) == 0 ? next(4) : i / 300 * 7 % 4;
    const int rank = static_cast<int>(kind % 2);
    const std::uint64_t bytes = kind / 2 == 0 ? 4096 : kChunkBytes;
    if (next(2) == 0 && pool(rank).can_hand(bytes, 1 - rank)) {
      unread.push_back({1 - rank, hand(rank, 1 - rank, bytes)});
    } else if (!unread.empty()) {
      const auto one = unread.begin() + static_cast<std::ptrdiff_t>(next(unread.size()));
      pool(one->reader).keep(1 - one->reader, one->chunk);
      unread.erase(one);
    }
  }
  for (const Unread& one : unread) pool(one.reader).keep(1 - one.reader, one.chunk);
  std::map<std::uint64_t, std::uint64_t> all;  // how long each is
  std::size_t chunks = 0;
  for (const int rank : {0, 1}) {
    for (const std::uint64_t bytes : {kSmallBytes, kChunkBytes}) {
      while (pool(rank).can_hand(bytes, 1 - rank)) {
        const Pool::Handed chunk = hand(rank, 1 - rank, bytes);
        all[chunk.offset] = chunk.bytes;
        ++chunks;
      }
      for (const std::uint64_t chunk : own(pool(rank), bytes)) {
        all[chunk] = bytes;
        ++chunks;
      }
    }
  }
  EXPECT_EQ(all.size(), chunks) << "none is there twice";
  // And none is lost: the pools, and of what they may grow by what has been begun.
  std::set<std::uint64_t> begins = {segment_->pool(0), segment_->pool(1)};
  std::uint64_t end = 0;
  for (const auto& [offset, bytes] : all) {
    EXPECT_TRUE(offset == end || begins.erase(offset) == 1)
        << "nobody has what is before " << offset;
    end = offset + bytes;
  }
}

// Those for short messages and those for long ones: each may be all that a rank ever gets.
TEST_F(HandingOver, NoneGoesInExchangeForOneOfTheOtherLength) {
  for (int i = 0; i < 100; ++i) {
    if (pool(0).can_hand(2048, 1)) pool(1).keep(0, hand(0, 1, 2048));
    if (pool(1).can_hand(kChunkBytes, 0)) pool(0).keep(1, hand(1, 0, kChunkBytes));
  }
  EXPECT_FALSE(pool(0).can_hand(2048, 1));
  EXPECT_FALSE(pool(1).can_hand(kChunkBytes, 0));
  EXPECT_EQ(own(pool(0), kChunkBytes).size(), kSizes.large_bytes / kChunkBytes);
  EXPECT_EQ(own(pool(1), kSmallBytes).size(), kSizes.small_bytes / kSmallBytes);
}

TEST_F(HandingOver, NoneIsHandedOverWhereNoneMayBe) {
  Pool none(*segment_, 0, kChunkBytes, 1, 0);
  EXPECT_FALSE(none.can_hand(kChunkBytes, 1));
  const Pool::Handed came = hand(1, 0, kChunkBytes);
  none.keep(1, came);
  EXPECT_FALSE(none.can_hand(kChunkBytes, 1));
  EXPECT_TRUE(own(none, kChunkBytes).count(came.offset)) << "it is used for other messages";
}

TEST_F(HandingOver, OneIsLessThanTheFirstTwo) {
  Pool one(*segment_, 0, kChunkBytes, 1, 1);
  ASSERT_TRUE(one.can_hand(kChunkBytes, 1));
  (void)one.hand(kChunkBytes, 1);
  EXPECT_FALSE(one.can_hand(kChunkBytes, 1));
}

// Settings may differ between ranks.
TEST_F(HandingOver, ChunksOfOtherSizesAreUsedAsFarAsTheyReach) {
  Pool longer(*segment_, 0, 2 * kChunkBytes, 1, kMost);
  const Pool::Handed large = longer.hand(2 * kChunkBytes, 1);
  pool(1).keep(0, large);
  const Pool::Handed back = hand(1, 0, kChunkBytes);
  EXPECT_EQ(back.offset, large.offset);
  longer.keep(1, back);
  EXPECT_EQ(longer.hand(2 * kChunkBytes, 1).offset, large.offset) << "it is as long as before";
  const Pool::Handed small = hand(1, 0, kChunkBytes);
  longer.keep(1, small);
  EXPECT_NE(longer.hand(2 * kChunkBytes, 1).offset, small.offset);
  EXPECT_EQ(longer.hand(kSmallBytes, 1).offset, small.offset) << "a short message fits there";
}

// No message is longer than a short one then.
TEST_F(HandingOver, AllChunksMayHoldShortMessagesOnly) {
  std::array<Pool, 2> pools = {Pool(*segment_, 0, kSmallBytes, 1, kMost),
                               Pool(*segment_, 1, kSmallBytes, 1, kMost)};
  const Pool::Handed there = pools[0].hand(kSmallBytes, 1);
  pools[1].keep(0, there);
  EXPECT_EQ(pools[1].hand(kSmallBytes, 0).offset, there.offset);
}

TEST_F(HandingOver, AnInvitationIsTheLastGiversWord) {
  EXPECT_FALSE(pool(1).is_invited(kChunkBytes, 0));
  Pool::Handed chunk = hand(0, 1, kChunkBytes);
  chunk.invites = true;
  pool(1).keep(0, chunk);
  EXPECT_TRUE(pool(1).is_invited(kChunkBytes, 0));
  EXPECT_FALSE(pool(1).is_invited(64, 0)) << "such a one has not come";
  chunk = hand(0, 1, kChunkBytes);
  pool(1).keep(0, chunk);
  EXPECT_FALSE(pool(1).is_invited(kChunkBytes, 0));
}

}  // namespace
}  // namespace carillon::shm
