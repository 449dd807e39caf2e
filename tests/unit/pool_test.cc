// SPDX-License-Identifier: Apache-2.0
//
// Where messages go in a rank's pool: however short they are, the whole pool passes before bytes of
// it are written again.
#include "transport/shm/pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <set>

namespace carillon::shm {
namespace {

constexpr std::uint64_t kChunkBytes = 65536;
constexpr PoolSizes kSizes{.small_bytes = 1 << 20, .large_bytes = 2 << 20};

class PoolTest : public testing::Test {
 protected:
  void SetUp() override {
    auto segment = Segment::create(2, {.control_bytes = 1 << 20,
                                       .pool = kSizes,
                                       .reserve_bytes = 1 << 20,
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
  Pool pool(*segment_, 1, kChunkBytes, 1);
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
  Pool pool(*segment_, 0, kChunkBytes, 1);
  const std::uint64_t chunks = segment_->pool(0) + kSizes.small_bytes;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = 8193 + i * 7919 % (kChunkBytes - 8192);
    const std::uint64_t place = pool.take(bytes, {}) - chunks;
    ASSERT_EQ(place / kChunkBytes, (place + bytes - 1) / kChunkBytes) << bytes;
  }
}

}  // namespace
}  // namespace carillon::shm
