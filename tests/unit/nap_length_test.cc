// SPDX-License-Identifier: Apache-2.0
//
// How long the servlet lets messages gather: longer the longer they take already, and shorter if
// many come in the meantime.
#include "engine/nap_length.h"

#include <gtest/gtest.h>

namespace carillon::test {
namespace {

constexpr std::int64_t kLong = 10'000'000;  // us

TEST(NapLength, GrowsToItsMostWhereLittleComes) {
  NapLength nap;
  int last = 0;
  for (int i = 0; i < 20; ++i) {
    const int us = nap.next_us(kLong, 0);
    EXPECT_GE(us, last);
    last = us;
  }
  EXPECT_GT(nap.next_us(kLong, 4), NapLength::kLeastUs);
  EXPECT_EQ(last, NapLength::kMostUs);
}

TEST(NapLength, HalvesWhereMuchComesAndStaysWhereEnoughDoes) {
  NapLength nap;
  std::uint64_t seen = 0;
  for (int i = 0; i < 20; ++i) nap.next_us(kLong, seen);
  EXPECT_EQ(nap.next_us(kLong, seen += 6), NapLength::kMostUs);
  EXPECT_EQ(nap.next_us(kLong, seen += 9), NapLength::kMostUs / 2);
  EXPECT_EQ(nap.next_us(kLong, seen += 8), NapLength::kMostUs / 2);
  EXPECT_EQ(nap.next_us(kLong, seen += 9), NapLength::kMostUs / 4);
  EXPECT_EQ(nap.next_us(kLong, seen += 1000), NapLength::kLeastUs);
  EXPECT_EQ(nap.next_us(kLong, seen += 1000), NapLength::kLeastUs);
}

TEST(NapLength, IsASmallShareOfTheTimeInFlight) {
  NapLength nap;
  for (int i = 0; i < 20; ++i) nap.next_us(kLong, 0);
  EXPECT_EQ(nap.next_us(0, 0), NapLength::kLeastUs);
  EXPECT_EQ(nap.next_us(1000, 0), NapLength::kLeastUs);
  EXPECT_EQ(nap.next_us(8000, 0), 500);
  EXPECT_EQ(nap.next_us(1'000'000, 0), NapLength::kMostUs);
}

}  // namespace
}  // namespace carillon::test
