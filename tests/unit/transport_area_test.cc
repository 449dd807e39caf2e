// SPDX-License-Identifier: Apache-2.0
//
// Where a team has what in shared memory: nothing overlaps, lines to a NUMA domain take memory only
// on nodes of several, and lines of pairs only where somebody uses them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "transport/shm/control.h"
#include "transport/shm/layout.h"

namespace carillon::shm {
namespace {

constexpr std::size_t kLines = kWindow * sizeof(Line);

// How often each byte is used.
struct Users {
  explicit Users(std::size_t bytes) : of(bytes, 0) {}
  void use(std::size_t offset, std::size_t bytes) {
    ASSERT_LE(offset + bytes, of.size());
    EXPECT_EQ(offset % kCacheLine, 0U);
    for (std::size_t i = 0; i < bytes; ++i) ++of[offset + i];
  }
  void expect_each_used_once() const { EXPECT_EQ(of, std::vector<int>(of.size(), 1)); }
  std::vector<int> of;
};

TEST(Areas, HaveLinesToADomainOnlyWhereThereAreDomains) {
  for (const std::size_t size : {1U, 2U, 3U, 5U, 7U, 8U, 13U, 240U}) {
    const AreaLayout plain{.size = size, .has_domains = false};
    const AreaLayout with{.size = size, .has_domains = true};
    EXPECT_EQ(plain.bytes(), sizeof(Progress) + kLines + size * sizeof(Acks));
    EXPECT_EQ(with.bytes(), plain.bytes() + kLines);
    EXPECT_EQ(plain.pair_bytes(), size * kLines);
    EXPECT_EQ(with.pair_bytes(), plain.pair_bytes());
  }
}

TEST(Areas, HaveNothingTwice) {
  for (const bool has_domains : {false, true}) {
    const AreaLayout layout{.size = 5, .has_domains = has_domains};
    Users area(layout.bytes());
    Users pairs(layout.pair_bytes());
    area.use(AreaLayout::progress(), sizeof(Progress));
    area.use(layout.shared_lines(Audience::kNode), kLines);
    if (has_domains) area.use(layout.shared_lines(Audience::kDomain), kLines);
    for (std::size_t writer = 0; writer < layout.size; ++writer) {
      area.use(AreaLayout::acks(writer), sizeof(Acks));
      pairs.use(AreaLayout::pair_lines(writer), kLines);
    }
    area.expect_each_used_once();
    pairs.expect_each_used_once();
  }
}

class ControlMemoryTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kFirst = 4096;
  static constexpr std::uint64_t kBytes = 64 << 10;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kFirst + kBytes);
  ControlMemory control_{memory_.data(), kFirst, kBytes};

  [[nodiscard]] bool all_zero(std::uint64_t offset, std::uint64_t bytes) const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(offset),
                       memory_.begin() + static_cast<std::ptrdiff_t>(offset + bytes),
                       [](std::byte byte) { return byte == std::byte{0}; });
  }
};

TEST_F(ControlMemoryTest, PairLinesOfAllTeamsStandTogetherAtTheBack) {
  Users users(kFirst + kBytes);
  std::uint64_t areas_end = 0;
  std::uint64_t lines_begin = kFirst + kBytes;
  for (const std::size_t size : {2U, 5U, 1U, 8U, 3U}) {
    const AreaLayout layout{.size = size, .has_domains = false};
    const auto place = control_.allocate_area(layout);
    ASSERT_TRUE(place);
    users.use(place->area, layout.bytes());
    areas_end = std::max(areas_end, place->area + layout.bytes());
    users.use(place->pair_lines, layout.pair_bytes());
    EXPECT_EQ(place->pair_lines + layout.pair_bytes(), lines_begin);
    lines_begin = place->pair_lines;
  }
  EXPECT_LE(areas_end, lines_begin);
  EXPECT_EQ(*std::max_element(users.of.begin(), users.of.end()), 1);
  EXPECT_EQ(users.of[kFirst - 1], 0);
}

TEST_F(ControlMemoryTest, WhatIsUsedAgainIsClearedAndStaysWhatItWas) {
  // Of two ranks the pair lines are as long as the area of seven.
  const AreaLayout two{.size = 2, .has_domains = false};
  const AreaLayout seven{.size = 7, .has_domains = false};
  ASSERT_EQ(two.pair_bytes(), seven.bytes());
  const auto first = control_.allocate_area(two);
  ASSERT_TRUE(first);
  std::memset(memory_.data() + first->area, 1, two.bytes());
  std::memset(memory_.data() + first->pair_lines, 1, two.pair_bytes());
  control_.release_area(*first, two);

  const auto other = control_.allocate_area(seven);
  ASSERT_TRUE(other);
  EXPECT_NE(other->area, first->pair_lines);
  const auto again = control_.allocate_area(two);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->area, first->area);
  EXPECT_EQ(again->pair_lines, first->pair_lines);
  EXPECT_TRUE(all_zero(again->area, two.bytes()));
  EXPECT_TRUE(all_zero(again->pair_lines, two.pair_bytes()));
}

TEST_F(ControlMemoryTest, ATeamThatFindsNoRoomTakesNothing) {
  const AreaLayout large{.size = 100, .has_domains = false};  // 6.8 KiB and 50 KiB
  ASSERT_TRUE(control_.allocate_area(large));
  EXPECT_FALSE(control_.allocate_area(large));
  // The area that it took before it found no room for lines can be had.
  EXPECT_TRUE(control_.allocate(large.bytes(), 0));
  EXPECT_FALSE(control_.allocate(large.bytes(), 0));
}

}  // namespace
}  // namespace carillon::shm
