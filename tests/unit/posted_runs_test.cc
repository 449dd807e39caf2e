// SPDX-License-Identifier: Apache-2.0
//
// The queue of runs that are posted while the servlet has the lock: in order, all of them, full or
// not.
#include "engine/posted_runs.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <thread>

#include "engine/run.h"

namespace carillon {
namespace {

constexpr std::size_t kRoom = 1024;

TEST(PostedRuns, ComeOutAsTheyWentIn) {
  const auto runs = std::make_unique<std::array<carillon::Run, 7>>();
  PostedRuns posted;
  EXPECT_TRUE(posted.empty());
  EXPECT_EQ(posted.pop(), nullptr);
  std::size_t next = 0;
  for (std::size_t round = 0; round < 500; ++round) {  // around the end of its places
    for (std::size_t i = 0; i <= round % runs->size(); ++i) {
      EXPECT_TRUE(posted.push((*runs)[(next + i) % runs->size()]));
    }
    EXPECT_FALSE(posted.empty());
    for (std::size_t i = 0; i <= round % runs->size(); ++i) {
      EXPECT_EQ(posted.pop(), &(*runs)[next++ % runs->size()]) << round;
    }
    EXPECT_TRUE(posted.empty());
    EXPECT_EQ(posted.pop(), nullptr);
  }
}

TEST(PostedRuns, AreRefusedWhereThereIsNoRoom) {
  const auto runs = std::make_unique<std::array<carillon::Run, 2>>();
  PostedRuns posted;
  for (int fill = 0; fill < 3; ++fill) {
    for (std::size_t i = 0; i < kRoom; ++i) ASSERT_TRUE(posted.push((*runs)[i % 2])) << i;
    EXPECT_FALSE(posted.push((*runs)[1]));
    EXPECT_EQ(posted.pop(), &(*runs)[0]);
    EXPECT_TRUE(posted.push((*runs)[0])) << "room for one";
    EXPECT_FALSE(posted.push((*runs)[1]));
    for (std::size_t i = 1; i < kRoom; ++i) ASSERT_EQ(posted.pop(), &(*runs)[i % 2]) << i;
    EXPECT_EQ(posted.pop(), &(*runs)[0]);
    EXPECT_TRUE(posted.empty());
  }
}

TEST(PostedRuns, ComeToAnotherThreadInOrder) {
  constexpr std::size_t kPosts = 200'000;
  const auto runs = std::make_unique<std::array<carillon::Run, 13>>();
  PostedRuns posted;
  std::thread producer([&] {
    for (std::size_t i = 0; i < kPosts; ++i) {
      while (!posted.push((*runs)[i % runs->size()])) std::this_thread::yield();
    }
  });
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kPosts;) {
    carillon::Run* const run = posted.pop();
    if (run == nullptr) {
      std::this_thread::yield();
      continue;
    }
    wrong += run == &(*runs)[i++ % runs->size()] ? 0 : 1;
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(posted.empty());
}

}  // namespace
}  // namespace carillon
