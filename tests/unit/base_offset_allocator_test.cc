// SPDX-License-Identifier: Apache-2.0
//
// Ranges that are handed out lie within the whole and nowhere on one another, and what comes back
// becomes one again.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <random>

#include "base/offset_allocator.h"

namespace carillon {
namespace {

constexpr std::uint64_t kFirst = 100, kBytes = 100'000;

TEST(OffsetAllocator, GivesTheFirstPlaceOrTheLast) {
  OffsetAllocator ranges(kFirst, 1000);
  EXPECT_EQ(ranges.allocate(10, 8), 104U);
  EXPECT_EQ(ranges.allocate_last(10, 8), 1080U);  // up to 1096, which is a multiple of 8
  EXPECT_EQ(ranges.allocate(1, 64), 128U);
  EXPECT_EQ(ranges.allocate_last(1, 64), 960U);  // 1024 would reach into it
  EXPECT_EQ(ranges.size_of(104), 16U);
  EXPECT_EQ(ranges.size_of(105), 0U);
  EXPECT_EQ(ranges.allocate(1000, 8), std::nullopt);
  EXPECT_EQ(ranges.allocate_last(1000, 8), std::nullopt);
}

TEST(OffsetAllocator, HandsNothingOutTwice) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t most) { return random() % most; };
  OffsetAllocator ranges(kFirst, kBytes);
  std::map<std::uint64_t, std::uint64_t> held;  // offset -> end
  for (int i = 0; i < 20000; ++i) {
    if (below(5) < 2 && !held.empty()) {
      auto one = held.begin();
      std::advance(one, static_cast<std::ptrdiff_t>(below(held.size())));
      ranges.release(one->first);
      held.erase(one);
      continue;
    }
    const std::uint64_t bytes = below(3000) + 1;
    const std::uint64_t alignment = std::uint64_t{1} << below(8);
    const auto place =
        below(2) == 0 ? ranges.allocate(bytes, alignment) : ranges.allocate_last(bytes, alignment);
    if (!place) continue;
    ASSERT_EQ(*place % alignment, 0U);
    ASSERT_GE(*place, kFirst);
    ASSERT_GE(ranges.size_of(*place), bytes);
    const std::uint64_t end = *place + ranges.size_of(*place);
    ASSERT_LE(end, kFirst + kBytes);
    const auto next = held.lower_bound(*place);
    if (next != held.end()) {
      ASSERT_LE(end, next->first);
    }
    if (next != held.begin()) {
      ASSERT_LE(std::prev(next)->second, *place);
    }
    held[*place] = end;
  }
  EXPECT_GT(held.size(), 10U);
  for (const auto& [offset, end] : held) ranges.release(offset);
  EXPECT_EQ(ranges.allocate(kBytes, 1), kFirst);
}

}  // namespace
}  // namespace carillon
