// SPDX-License-Identifier: Apache-2.0
//
// CARILLON_SERVLET=auto: the collective decides, and what a rank moves in it.
#include "api/served.h"

#include <gtest/gtest.h>

namespace carillon {
namespace {

bool is_served(const ServedCall& call) {
  return moved_bytes(call) >= served_from_bytes(call.collective);
}

TEST(Served, WhatIsReducedSooner) {
  EXPECT_TRUE(is_served({.collective = Collective::kBcast, .ranks = 4, .bytes = 65536}));
  EXPECT_FALSE(is_served({.collective = Collective::kBcast, .ranks = 4, .bytes = 65535}));
  EXPECT_TRUE(is_served({.collective = Collective::kAllreduce, .ranks = 4, .bytes = 32768}));
  EXPECT_FALSE(is_served({.collective = Collective::kAllreduce, .ranks = 4, .bytes = 32767}));
}

TEST(Served, WhoHasABlockForEachRank) {
  for (const Collective each :
       {Collective::kAlltoall, Collective::kAllgather, Collective::kReduceScatterBlock}) {
    const std::int64_t least = served_from_bytes(each) / 4;
    EXPECT_TRUE(is_served({.collective = each, .ranks = 4, .bytes = least}));
    EXPECT_FALSE(is_served({.collective = each, .ranks = 4, .bytes = least - 1}));
    EXPECT_FALSE(is_served({.collective = each, .ranks = 3, .bytes = least}));
  }
}

TEST(Served, TheRootOfBlocks) {
  for (const Collective each : {Collective::kGather, Collective::kScatter}) {
    EXPECT_TRUE(is_served({.collective = each, .ranks = 8, .is_root = true, .bytes = 8192}));
    EXPECT_FALSE(is_served({.collective = each, .ranks = 8, .is_root = false, .bytes = 8192}));
    EXPECT_TRUE(is_served({.collective = each, .ranks = 8, .is_root = false, .bytes = 65536}));
  }
}

TEST(Served, NoBarrier) {
  EXPECT_FALSE(is_served({.collective = Collective::kBarrier, .ranks = 1000}));
}

TEST(Served, BeyondAllBounds) {
  const std::int64_t most = kNeverServed - 1;
  EXPECT_GE(moved_bytes({.collective = Collective::kAlltoall, .ranks = 1000, .bytes = most}),
            most / 1000 * 1000);
}

}  // namespace
}  // namespace carillon
