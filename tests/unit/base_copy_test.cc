// SPDX-License-Identifier: Apache-2.0
//
// All ways of copying copy what they are told to, and nothing else, wherever source and destination
// lie in their pages. (How fast copy_memory is, build/bin/reduce_kernels_benchmark says.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy.h"

namespace carillon {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::byte kUntouched{0xee};

std::byte value_at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 251); }

using Copy = void (*)(void*, const void*, std::size_t);
using CopyToBoth = void (*)(void*, void*, const void*, std::size_t);
template <CopyToBoth kCopy>
void copy_to_one(void* to, const void* from, std::size_t bytes) {
  std::vector<std::byte> other(bytes + 1);
  kCopy(to, other.data() + 1, from, bytes);
  EXPECT_EQ(bytes == 0 ? 0 : std::memcmp(other.data() + 1, from, bytes), 0);
}
template <CopyToBoth kCopy>
void copy_to_other(void* to, const void* from, std::size_t bytes) {
  std::vector<std::byte> other(bytes + 1);
  kCopy(other.data(), to, from, bytes);
  EXPECT_EQ(bytes == 0 ? 0 : std::memcmp(other.data(), from, bytes), 0);
  EXPECT_EQ(other[bytes], std::byte{});
}

class Copies : public testing::TestWithParam<Copy> {};
INSTANTIATE_TEST_SUITE_P(Ways, Copies,
                         testing::Values(Copy{copy_memory}, Copy{copy_past_caches},
                                         Copy{copy_by_vectors}, Copy{copy_to_one<copy_to_both>},
                                         Copy{copy_to_other<copy_to_both>},
                                         Copy{copy_to_one<copy_to_both_by_vectors>},
                                         Copy{copy_to_other<copy_to_both_by_vectors>}));

TEST_P(Copies, AllPlacesInAPage) {
  std::vector<std::byte> from(8 * kPage), to(10 * kPage);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = value_at(i);
  for (const std::size_t bytes :
       {0, 1, 8, 63, 64, 65, 200, 1023, 1024, 1025, 2048, 3000, 8192, 16384, 20000}) {
    for (const std::size_t start : {0, 5, 64}) {
      for (std::size_t behind = 0; behind <= kPage + 40; behind += behind < 40 ? 1 : 509) {
        std::fill(to.begin(), to.end(), kUntouched);
        const auto dst = to.begin() + static_cast<std::ptrdiff_t>(start + behind);
        const auto end = dst + static_cast<std::ptrdiff_t>(bytes);
        GetParam()(&*dst, from.data() + start, bytes);
        ASSERT_TRUE(std::equal(dst, end, from.begin() + static_cast<std::ptrdiff_t>(start)))
            << bytes << " bytes, " << behind << " behind";
        ASSERT_EQ(std::count(to.begin(), dst, kUntouched), dst - to.begin());
        ASSERT_EQ(std::count(end, to.end(), kUntouched), to.end() - end)
            << bytes << " bytes, " << behind << " behind";
      }
    }
  }
  GetParam()(nullptr, nullptr, 0);
}

TEST(CopyMemory, KnowsTheTrap) {
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
