// SPDX-License-Identifier: Apache-2.0
//
// Where a team area has what: nothing overlaps, and lines to a NUMA domain take memory only on
// nodes of several.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "transport/shm/layout.h"

namespace carillon::shm {
namespace {

constexpr std::size_t kLines = kWindow * sizeof(Line);

TEST(Areas, HaveLinesToADomainOnlyWhereThereAreDomains) {
  for (const std::size_t size : {1U, 2U, 3U, 5U, 7U, 8U, 13U, 240U}) {
    const AreaLayout plain{.size = size, .has_domains = false};
    const AreaLayout with{.size = size, .has_domains = true};
    EXPECT_EQ(plain.bytes(), sizeof(Progress) + (1 + size) * kLines + 2 * size * sizeof(Counter));
    EXPECT_EQ(with.bytes(), plain.bytes() + kLines + size * sizeof(Counter));
    EXPECT_EQ(with.pair_ack(size - 1), plain.pair_ack(size - 1));
  }
}

TEST(Areas, HaveNothingTwice) {
  for (const bool has_domains : {false, true}) {
    const AreaLayout layout{.size = 5, .has_domains = has_domains};
    std::vector<int> users(layout.bytes(), 0);
    const auto use = [&](std::size_t offset, std::size_t bytes) {
      ASSERT_LE(offset + bytes, users.size());
      EXPECT_EQ(offset % kCacheLine, 0U);
      for (std::size_t i = 0; i < bytes; ++i) ++users[offset + i];
    };
    std::vector<Audience> audiences{Audience::kNode};
    if (has_domains) audiences.push_back(Audience::kDomain);
    use(AreaLayout::progress(), sizeof(Progress));
    for (const Audience audience : audiences) use(layout.shared_lines(audience), kLines);
    for (std::size_t writer = 0; writer < layout.size; ++writer) {
      use(layout.pair_lines(writer), kLines);
      use(layout.pair_ack(writer), sizeof(Counter));
      for (const Audience audience : audiences) {
        use(layout.shared_ack(audience, writer), sizeof(Counter));
      }
    }
    EXPECT_EQ(users, std::vector<int>(users.size(), 1));
  }
}

}  // namespace
}  // namespace carillon::shm
