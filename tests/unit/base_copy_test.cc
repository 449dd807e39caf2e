// SPDX-License-Identifier: Apache-2.0
//
// copy_memory copies what it is told to, and nothing else, wherever source and destination lie in
// their pages. (How fast it is, build/bin/reduce_kernels says.)
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/copy.h"

namespace carillon {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::byte kUntouched{0xee};

std::byte value_at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 251); }

TEST(Copy, AllPlacesInAPage) {
  std::vector<std::byte> from(4 * kPage), to(6 * kPage);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = value_at(i);
  for (const std::size_t bytes : {0, 1, 8, 1023, 1024, 1025, 2048, 3000, 8192}) {
    for (const std::size_t start : {0, 5, 64}) {
      for (std::size_t behind = 0; behind <= kPage + 40; behind += behind < 40 ? 1 : 509) {
        std::fill(to.begin(), to.end(), kUntouched);
        const auto dst = to.begin() + static_cast<std::ptrdiff_t>(start + behind);
        const auto end = dst + static_cast<std::ptrdiff_t>(bytes);
        copy_memory(&*dst, from.data() + start, bytes);
        ASSERT_TRUE(std::equal(dst, end, from.begin() + static_cast<std::ptrdiff_t>(start)))
            << bytes << " bytes, " << behind << " behind";
        ASSERT_EQ(std::count(to.begin(), dst, kUntouched), dst - to.begin());
        ASSERT_EQ(std::count(end, to.end(), kUntouched), to.end() - end)
            << bytes << " bytes, " << behind << " behind";
      }
    }
  }
  copy_memory(nullptr, nullptr, 0);
}

TEST(Copy, KnowsTheTrap) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  constexpr std::uintptr_t kPlace = 100 * kPage + 48;
  EXPECT_FALSE(copies_slowly(at(kPlace), at(kPlace + 3 * kPage)));
  EXPECT_TRUE(copies_slowly(at(kPlace + 1), at(kPlace + 3 * kPage)));
  EXPECT_TRUE(copies_slowly(at(kPlace + 31), at(kPlace - 7 * kPage)));
  EXPECT_FALSE(copies_slowly(at(kPlace + 32), at(kPlace)));
  EXPECT_FALSE(copies_slowly(at(kPlace - 16), at(kPlace)));
}

}  // namespace
}  // namespace carillon
