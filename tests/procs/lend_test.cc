// SPDX-License-Identifier: Apache-2.0
//
// Reading the private memory of another rank's process (shm::Segment): what is there, what is not,
// and of a process that has ended.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "support/calls.h"
#include "transport/shm/segment.h"

namespace carillon::test {
namespace {

constexpr std::size_t kValues = 40000;  // many pages

class Lend : public testing::Test {
 protected:
  void SetUp() override {
    auto made = shm::Segment::create(2, {});
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    segment_ = made.value();
  }

  // Where the rank tells the other one an address.
  [[nodiscard]] std::uint64_t& told(int rank) const {
    return *reinterpret_cast<std::uint64_t*>(segment_->base() + segment_->control(rank));
  }

  void enter(int rank) {
    ASSERT_TRUE(segment_->enter(rank).ok());
    told(rank) = reinterpret_cast<std::uint64_t>(values_.data());
    meeting_.barrier(rank);
    const Status tried = segment_->try_reading(rank);
    EXPECT_EQ(tried.ok(), segment_->reads(rank)) << tried.to_string();
    meeting_.barrier(rank);
  }

  std::shared_ptr<shm::Segment> segment_;
  Meeting meeting_{2};
  std::vector<std::int64_t> values_ = std::vector<std::int64_t>(kValues);
};

TEST_F(Lend, ReadsWhatIsThere) {
  expect_processes_ok(2, [&](int rank) {
    values_ = values_of(rank, 3, kValues);
    enter(rank);
    if (!segment_->reads(rank)) GTEST_SKIP() << "the kernel forbids it here";
    EXPECT_TRUE(segment_->reads(1 - rank));
    std::vector<std::int64_t> got(kValues - 1);
    const std::uint64_t second = told(1 - rank) + sizeof(std::int64_t);
    const Status status =
        segment_->read_private(1 - rank, second, got.data(), got.size() * sizeof got[0]);
    EXPECT_TRUE(status.ok()) << status.to_string();
    const auto all = values_of(1 - rank, 3, kValues);
    EXPECT_EQ(got, std::vector<std::int64_t>(all.begin() + 1, all.end()));
    EXPECT_FALSE(segment_->read_private(1 - rank, 4096, got.data(), 8).ok()) << "no such memory";
    meeting_.barrier(rank);
  });
}

TEST_F(Lend, TellsThatTheProcessHasEnded) {
  expect_processes_ok(2, [&](int rank) {
    enter(rank);
    if (rank == 1 || !segment_->reads(rank)) return;
    std::int64_t value = 0;
    Status status;
    while (status.ok()) status = segment_->read_private(1, told(1), &value, sizeof value);
    EXPECT_EQ(status.code(), Code::kPeerDead) << status.to_string();
  });
}

// A rank whose private number is not what its state says is not read: it is another process.
TEST_F(Lend, AnotherProcessOfTheSamePidIsNotRead) {
  expect_processes_ok(2, [&](int rank) {
    ASSERT_TRUE(segment_->enter(rank).ok());
    meeting_.barrier(rank);
    if (rank == 0) segment_->state(1).process.store(7);
    meeting_.barrier(rank);
    EXPECT_EQ(segment_->try_reading(rank).code(), Code::kUnsupported);
    EXPECT_FALSE(segment_->reads(0));
    meeting_.barrier(rank);
  });
}

}  // namespace
}  // namespace carillon::test
