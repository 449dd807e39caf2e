// SPDX-License-Identifier: Apache-2.0
//
// Memory from crl_alloc is read where it stands: nothing may see it change, nothing may wait for
// itself.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

struct Heap {
  Heap(crl_context_h context, std::size_t count)
      : context_(context),
        data(static_cast<std::int64_t*>(crl_alloc(context, count * 8))),
        count_(count) {}
  ~Heap() { crl_free(context_, data); }
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

 private:
  crl_context_h context_;

 public:
  std::int64_t* data;
  void fill(std::int64_t rank, std::int64_t round) {
    const auto values = values_of(rank, round, count_);
    std::memcpy(data, values.data(), count_ * 8);
  }
  [[nodiscard]] std::vector<std::int64_t> values() const { return {data, data + count_}; }

 private:
  std::size_t count_;
};

TEST(HeapMemory, RootOverwritesItsBufferRightAfterBcast) {
  for (const int ranks : {2, 4}) {
    Meeting world(ranks), meeting(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      for (const std::size_t count :
           {std::size_t{100}, std::size_t{600}, std::size_t{8192}, std::size_t{100000}}) {
        Heap heap(context, count);
        ASSERT_NE(heap.data, nullptr);
        for (int round = 0; round < 50; ++round) {
          if (rank == 0) heap.fill(0, round);
          if (rank != 0 && round % 10 == rank) usleep(300);
          expect_ok(crl_bcast(team, heap.data, count * 8, 0));
          if (rank == 0) {
            std::memset(heap.data, 0xEE, count * 8);
          } else {
            ASSERT_EQ(heap.values(), values_of(0, round, count)) << count << " " << round;
          }
        }
      }
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

// Everybody is root and reader at once: who waits for its readers to end must not keep them.
TEST(HeapMemory, EverybodyPutsItsOwn) {
  for (const int ranks : {2, 3, 5}) {
    Meeting world(ranks), meeting(ranks);
    expect_processes_ok(
        ranks,
        [&](int rank) {
          crl_context_h context = make_context(world, rank);
          crl_team_h team = make_team(context, meeting.oob(rank));
          const auto size = static_cast<std::size_t>(ranks);
          for (const std::size_t count :
               {std::size_t{600}, std::size_t{9000}, std::size_t{70000}}) {
            Heap in(context, count * size), out(context, count * size);
            for (int round = 0; round < 5; ++round) {
              in.fill(rank, round);
              expect_ok(crl_allgather(team, in.data, out.data, count * 8));
              std::vector<std::int64_t> expected;
              for (int from = 0; from < ranks; ++from) {
                const auto part = values_of(from, round, count);
                expected.insert(expected.end(), part.begin(), part.end());
              }
              ASSERT_EQ(out.values(), expected) << "allgather " << count;
              expect_ok(crl_allreduce(team, in.data, out.data, count, CRL_INT64, CRL_SUM));
              const auto sums = sums_of(ranks, round, count);
              ASSERT_EQ(std::memcmp(out.data, sums.data(), count * 8), 0) << "allreduce " << count;
              expect_ok(crl_alltoall(team, in.data, out.data, count * 8));
              for (int from = 0; from < ranks; ++from) {
                ASSERT_EQ(
                    out.data[static_cast<std::size_t>(from) * count],
                    value_of(from, round,
                             static_cast<std::int64_t>(static_cast<std::size_t>(rank) * count)));
              }
              // several at once: not all can be the team's oldest
              std::array<crl_request_h, 6> requests = {};
              std::vector<std::vector<std::int64_t>> results(
                  6, std::vector<std::int64_t>(count * size));
              for (std::size_t i = 0; i < requests.size(); ++i) {
                expect_ok(
                    crl_iallgather(team, in.data, results[i].data(), count * 8, &requests[i]));
              }
              for (auto& request : requests) expect_ok(crl_request_wait(&request));
              for (const auto& result : results) ASSERT_EQ(result, expected);
            }
          }
          crl_team_destroy(team);
          crl_context_destroy(context);
        },
        30);
  }
}

// Blocks that are passed on round the ring are read where the last one has put them.
TEST(HeapMemory, WhatIsPassedOnStaysWhereItLanded) {
  constexpr int kRanks = 4;
  constexpr std::size_t kBlock = 8192;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    setenv("CARILLON_ALGORITHM", "allgather=ring", 1);
    unsetenv("CARILLON_NODE_RANKS");  // all on one node
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    {
      Heap in(context, kBlock), out(context, kRanks * kBlock);
      ASSERT_NE(out.data, nullptr);
      std::vector<std::int64_t> expected;
      for (int from = 0; from < kRanks; ++from) {
        const auto block = values_of(from, 3, kBlock);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      in.fill(rank, 3);
      crl_traffic_t before, after;
      crl_context_traffic(context, &before);
      expect_ok(crl_allgather(team, in.data, out.data, kBlock * 8));
      crl_context_traffic(context, &after);
      EXPECT_EQ(out.values(), expected);
      EXPECT_EQ(after.in_place_bytes - before.in_place_bytes, (kRanks - 1) * kBlock * 8);
      EXPECT_EQ(after.copied_bytes, before.copied_bytes);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

TEST(HeapMemory, OutlivesItsContext) {
  Meeting world(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    auto* const memory = static_cast<int*>(crl_alloc(context, sizeof(int)));
    ASSERT_NE(memory, nullptr);
    *memory = 42 + rank;
    crl_context_destroy(context);
    EXPECT_EQ(*memory, 42 + rank);
  });
}

// What another process says of a place is looked at before it is read there.
TEST(HeapMemory, IsNotReadWhereItIsNot) {
  Meeting world(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    const Engine& engine = *context->engine;
    auto* const memory = static_cast<std::byte*>(crl_alloc(context, 5000));
    ASSERT_NE(memory, nullptr);
    const std::optional<std::uint64_t> offset = engine.shared_offset(memory, 5000);
    ASSERT_TRUE(offset.has_value());
    EXPECT_EQ(engine.at_shared_offset(*offset, 5000), memory);
    const auto end = static_cast<std::uint64_t>(lseek(engine.segment().fd(), 0, SEEK_END));
    EXPECT_NE(engine.at_shared_offset(end - 8, 8), nullptr);
    EXPECT_EQ(engine.at_shared_offset(end - 8, 9), nullptr);
    EXPECT_EQ(engine.at_shared_offset(end + 1, 0), nullptr);
    EXPECT_EQ(engine.at_shared_offset(8, UINT64_MAX - 4), nullptr);
    EXPECT_EQ(engine.at_shared_offset(end << 8, 1), nullptr);
    crl_free(context, memory);
    crl_context_destroy(context);
  });
}

TEST(HeapMemory, RunsOut) {
  Meeting world(1);
  expect_processes_ok(1, [&](int rank) {
    setenv("CARILLON_HEAP_MIB", "4", 1);
    crl_context_h context = make_context(world, rank);
    void* const most = crl_alloc(context, 3 << 20);
    EXPECT_NE(most, nullptr);
    EXPECT_EQ(crl_alloc(context, 2 << 20), nullptr);
    EXPECT_NE(std::string(crl_last_error()).find("CARILLON_HEAP_MIB"), std::string::npos);
    EXPECT_EQ(crl_alloc(context, SIZE_MAX), nullptr);
    EXPECT_EQ(crl_alloc(context, SIZE_MAX - 100), nullptr);
    crl_free(context, most);
    crl_free(context, nullptr);
    void* const again = crl_alloc(context, 3 << 20);
    EXPECT_EQ(again, most);
    crl_context_destroy(context);
  });
}

}  // namespace
}  // namespace carillon::test
