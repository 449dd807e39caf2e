// SPDX-License-Identifier: Apache-2.0
//
// Runs of pages against a table that says of every page whose it is.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "pages.h"

namespace carillon::heap {
namespace {

constexpr std::uint32_t kPages = 500;

class PagesTest : public testing::Test {
 protected:
  // Whose each page is: 0 nobody's.
  void give(std::uint32_t first, std::uint32_t count, int owner) {
    ASSERT_LE(first + count, kPages);
    for (std::uint32_t page = first; page < first + count; ++page) {
      ASSERT_EQ(owners_[page], 0) << "page " << page << " given twice";
      owners_[page] = owner;
    }
    runs_[first] = count;
  }
  void take(std::uint32_t first) {
    for (std::uint32_t page = first; page < first + runs_[first]; ++page) owners_[page] = 0;
    runs_.erase(first);
  }
  std::uint32_t random(std::uint32_t below) {
    return static_cast<std::uint32_t>(generator_() % below);
  }
  std::uint32_t any_run() {
    auto found = runs_.begin();
    std::advance(found, random(static_cast<std::uint32_t>(runs_.size())));
    return found->first;
  }
  // Free pages at `page` and after it.
  [[nodiscard]] std::uint32_t free_from(std::uint32_t page) const {
    std::uint32_t count = 0;
    while (page + count < kPages && owners_[page + count] == 0) ++count;
    return count;
  }

  std::vector<Note> notes_ = std::vector<Note>(kPages);
  Pages pages_{notes_.data(), kPages};
  std::vector<int> owners_ = std::vector<int>(kPages, 0);
  std::map<std::uint32_t, std::uint32_t> runs_;
  std::minstd_rand generator_{17};
};

TEST_F(PagesTest, RunsNeverOverlapAndFreeOnesGrowTogether) {
  for (int step = 1; step <= 20000; ++step) {
    const std::uint32_t what = random(10);
    if (what < 5) {
      const std::uint32_t count = 1 + random(40), alignment = 1U << random(5);
      const std::uint32_t first = pages_.allocate(count, alignment);
      if (first == Pages::kNone) continue;
      ASSERT_EQ(first % alignment, 0U);
      give(first, count, step);
    } else if (!runs_.empty() && what < 8) {
      const std::uint32_t first = any_run();
      ASSERT_EQ(pages_.size_of(first), runs_[first]);
      pages_.release(first);
      ASSERT_EQ(pages_.size_of(first), 0U);
      take(first);
    } else if (!runs_.empty()) {
      const std::uint32_t first = any_run(), now = runs_[first], wanted = 1 + random(60);
      const bool fits = wanted <= now + free_from(first + now);
      ASSERT_EQ(pages_.resize(first, wanted), fits);
      if (!fits) continue;
      take(first);
      give(first, wanted, step);
    }
    if (HasFatalFailure()) return;
  }
  while (!runs_.empty()) {
    const std::uint32_t first = any_run();
    pages_.release(first);
    take(first);
  }
  EXPECT_EQ(pages_.allocate(kPages, 1), 0U) << "what was freed is not one run again";
}

TEST_F(PagesTest, KnowsWhatWasNeverUsed) {
  EXPECT_EQ(pages_.untouched(), 0U);
  const std::uint32_t first = pages_.allocate(10, 1);
  EXPECT_EQ(pages_.untouched(), 10U);
  pages_.release(first);
  EXPECT_EQ(pages_.allocate(4, 1), 0U) << "pages that were used come first";
  EXPECT_EQ(pages_.untouched(), 10U);
  std::uint32_t free = 0;
  pages_.each_free([&](std::uint32_t, std::uint32_t count) { free += count; });
  EXPECT_EQ(free, 6U);
}

TEST_F(PagesTest, TellsWhatIsUsed) {
  using Runs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const auto used = [&] {
    Runs runs;
    pages_.each_used([&](std::uint32_t at, std::uint32_t count) { runs.emplace_back(at, count); });
    return runs;
  };
  EXPECT_EQ(used(), Runs());
  for (const std::uint32_t count : {3U, 1U, 7U, 2U}) pages_.allocate(count, 1);
  EXPECT_EQ(used(), (Runs{{0, 3}, {3, 1}, {4, 7}, {11, 2}}));
  pages_.release(3);
  EXPECT_EQ(used(), (Runs{{0, 3}, {4, 7}, {11, 2}}));
  pages_.release(0);
  pages_.release(11);
  EXPECT_EQ(used(), (Runs{{4, 7}}));
  EXPECT_TRUE(pages_.resize(4, 5));
  EXPECT_EQ(used(), (Runs{{4, 5}}));
}

TEST_F(PagesTest, WhatWasNeverUsedCanGo) {
  const std::uint32_t first = pages_.allocate(10, 1), second = pages_.allocate(20, 1);
  pages_.release(second);
  pages_.cut_off_untouched();
  EXPECT_EQ(pages_.untouched(), 30U);
  EXPECT_EQ(pages_.allocate(21, 1), Pages::kNone);
  EXPECT_TRUE(pages_.resize(first, 12));
  EXPECT_FALSE(pages_.resize(first, 31));
  EXPECT_EQ(pages_.allocate(18, 1), 12U);
  EXPECT_EQ(pages_.allocate(1, 1), Pages::kNone);
  pages_.release(12);
  pages_.release(first);
  pages_.cut_off_untouched();
  EXPECT_EQ(pages_.allocate(30, 1), 0U) << "one run, of all that there is";
}

TEST_F(PagesTest, NothingIsLeftOfWhatWasNotUsed) {
  pages_.cut_off_untouched();
  EXPECT_EQ(pages_.allocate(1, 1), Pages::kNone);
  int runs = 0;
  pages_.each_free([&](std::uint32_t, std::uint32_t) { ++runs; });
  EXPECT_EQ(runs, 0);
}

TEST_F(PagesTest, AllMayHaveBeenUsed) {
  pages_.release(pages_.allocate(kPages, 1));
  pages_.cut_off_untouched();
  EXPECT_EQ(pages_.allocate(kPages, 1), 0U);
}

TEST_F(PagesTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(pages_.allocate(0, 1), Pages::kNone);
  EXPECT_EQ(pages_.allocate(kPages + 1, 1), Pages::kNone);
  EXPECT_EQ(pages_.allocate(1, 512), Pages::kNone);
  EXPECT_EQ(pages_.allocate(1, 256), 0U);
  EXPECT_EQ(pages_.allocate(1, 256), 256U);
  EXPECT_EQ(pages_.allocate(1, 256), Pages::kNone);
  pages_.release(256);
  EXPECT_EQ(pages_.allocate(kPages - 1, 1), 1U);
  EXPECT_EQ(pages_.allocate(1, 1), Pages::kNone);
  EXPECT_EQ(pages_.size_of(2), 0U) << "within a run";
  EXPECT_EQ(pages_.size_of(kPages - 1), 0U) << "the last page of a run";
}

}  // namespace
}  // namespace carillon::heap
