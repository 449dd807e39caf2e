// SPDX-License-Identifier: Apache-2.0
//
// IntervalMap against an array of bytes.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "schedule/interval_map.h"

namespace carillon {
namespace {

TEST(IntervalMap, AgreesWithAnArray) {
  constexpr int kBytes = 40;
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    IntervalMap<int> map;
    std::vector<std::optional<int>> model(kBytes);
    for (int step = 0; step < 40; ++step) {
      const auto begin = static_cast<std::int64_t>(random() % kBytes);
      const auto end = begin + static_cast<std::int64_t>(random() % (kBytes - begin + 1));
      const int value = static_cast<int>(random() % 3);
      map.assign(begin, end, value);
      for (auto i = begin; i < end; ++i) model[static_cast<std::size_t>(i)] = value;
      std::vector<std::optional<int>> seen(kBytes);
      map.each(0, kBytes, [&](std::int64_t from, std::int64_t to, int what) {
        ASSERT_LT(from, to);
        for (auto i = from; i < to; ++i) seen[static_cast<std::size_t>(i)] = what;
      });
      ASSERT_EQ(seen, model) << "round " << round << " step " << step << " seed " << kSeed;
      std::int64_t gap = begin;
      while (gap < kBytes && model[static_cast<std::size_t>(gap)]) ++gap;
      ASSERT_EQ(map.first_gap(begin, kBytes), gap);
    }
  }
}

TEST(IntervalMap, NeighboursOfOneValueAreOneSegment) {
  IntervalMap<int> map;
  map.assign(0, 8, 1);
  map.assign(16, 24, 1);
  map.assign(8, 16, 1);
  int segments = 0;
  map.each(0, 24, [&](std::int64_t, std::int64_t, int) { ++segments; });
  EXPECT_EQ(segments, 1);
}

}  // namespace
}  // namespace carillon
