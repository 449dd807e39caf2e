// SPDX-License-Identifier: Apache-2.0
//
// Long messages between nodes are not copied where they need not be: the reader gets them from
// where they stand. Counted are the gets, and the bytes that carillon copied.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr std::size_t kBytes = 50000;  // of a message
constexpr std::size_t kSmall = 2000;   // notes, statuses, places of exposed bytes

struct Work {
  std::uint64_t gets = 0;
  std::uint64_t copied_bytes = 0;
};

Work work_of(crl_context_h context) {
  net::Network& network = *context->engine->network();
  return {network.wire().counters().gets,
          network.counters().copied_bytes + network.wire().counters().copied_bytes};
}

class Fetch : public testing::Test {
 protected:
  // Every rank is a node.
  void SetUp() override {
    setenv("CARILLON_NODE_RANKS", "1", 1);
    setenv("CARILLON_FETCH_BYTES", "16384", 1);
  }
  void TearDown() override {
    for (const char* name : {"CARILLON_NODE_RANKS", "CARILLON_FETCH_BYTES", "CARILLON_ALGORITHM"}) {
      unsetenv(name);
    }
  }

  using Body = std::function<void(crl_team_h team, int rank, const std::function<Work()>& work)>;
  static void run(int ranks, const char* algorithm, const Body& body) {
    setenv("CARILLON_ALGORITHM", algorithm, 1);
    Meeting world(ranks), members(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      if (context->engine->network() == nullptr) return;  // said in a warning
      crl_team_h team = make_team(context, members.oob(rank));
      body(team, rank, [&] { return work_of(context); });
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
};

std::vector<std::uint8_t> bytes_of(int rank, int round, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::uint8_t>(value_of(rank, round, static_cast<std::int64_t>(i)) % 251);
  }
  return bytes;
}

// Down the tree each rank reads its parent's memory, where it was itself written by a get.
TEST_F(Fetch, BcastCopiesNothing) {
  for (const int ranks : {2, 3, 5, 8}) {
    run(ranks, "bcast=binomial", [](crl_team_h team, int rank, const auto& work) {
      for (int round = 0; round < 6; ++round) {
        const int root = round % crl_team_size(team);
        std::vector<std::uint8_t> data(kBytes);
        if (rank == root) data = bytes_of(root, round, kBytes);
        const Work before = work();
        expect_ok(crl_bcast(team, data.data(), data.size(), root));
        EXPECT_EQ(work().gets - before.gets, rank == root ? 0 : 1);
        EXPECT_LT(work().copied_bytes - before.copied_bytes, kSmall);
        EXPECT_EQ(data, bytes_of(root, round, kBytes)) << "rank " << rank << ", root " << root;
      }
    });
  }
}

TEST_F(Fetch, OfAnAlltoallvOnlyTheOwnBlockIsCopied) {
  constexpr int kRanks = 3;
  run(kRanks, "", [](crl_team_h team, int rank, const auto& work) {
    const std::vector<std::int64_t> counts(kRanks, kBytes);
    const std::vector<std::int64_t> places = {0, kBytes, 2 * kBytes};
    const auto in = bytes_of(rank, 1, kRanks * kBytes);
    std::vector<std::uint8_t> out(in.size());
    const Work before = work();
    expect_ok(crl_alltoallv(team, in.data(), counts.data(), places.data(), out.data(),
                            counts.data(), places.data()));
    EXPECT_EQ(work().gets - before.gets, kRanks - 1);
    EXPECT_LT(work().copied_bytes - before.copied_bytes, kBytes + kSmall);
    for (int from = 0; from < kRanks; ++from) {
      const auto theirs = bytes_of(from, 1, kRanks * kBytes);
      const auto at = static_cast<std::ptrdiff_t>(kBytes);
      EXPECT_TRUE(std::equal(theirs.begin() + rank * at, theirs.begin() + (rank + 1) * at,
                             out.begin() + from * at))
          << "from " << from << " to " << rank;
    }
  });
}

// What a rank adds to is overwritten while others have yet to read it: it is copied. What it only
// passes on is not.
TEST_F(Fetch, SumsAreRight) {
  for (const char* algorithm :
       {"allreduce=ring", "allreduce=reduce_scatter_allgather", "allreduce=degree_k:k=3"}) {
    run(4, algorithm, [&](crl_team_h team, int rank, const auto& work) {
      constexpr std::size_t kCount = 30000;
      for (int round = 0; round < 4; ++round) {
        std::vector<std::int64_t> out = values_of(rank, round, kCount);
        const std::vector<std::int64_t> in = out;
        const void* const input = round % 2 == 0 ? CRL_IN_PLACE : in.data();
        expect_ok(crl_allreduce(team, input, out.data(), kCount, CRL_INT64, CRL_SUM));
        EXPECT_EQ(out, sums_of(4, round, kCount)) << algorithm;
      }
      EXPECT_GT(work().gets, 0) << algorithm;
    });
  }
}

// Each waits for the others to have read its own; several at once, ended in reverse order.
TEST_F(Fetch, ManyInFlight) {
  run(3, "bcast=binomial", [](crl_team_h team, int rank, const auto&) {
    std::vector<std::vector<std::uint8_t>> data;
    std::vector<crl_request_h> requests(6);
    for (int i = 0; i < 6; ++i) {
      const auto count = static_cast<std::size_t>(10000 * (i + 1));
      data.push_back(i % 3 == rank ? bytes_of(rank, i, count) : std::vector<std::uint8_t>(count));
    }
    for (std::size_t i = 0; i < 6; ++i) {
      expect_ok(
          crl_ibcast(team, data[i].data(), data[i].size(), static_cast<int>(i % 3), &requests[i]));
    }
    for (std::size_t i = 6; i-- > 0;) {
      expect_ok(crl_request_wait(&requests[i]));
      EXPECT_EQ(data[i], bytes_of(static_cast<int>(i % 3), static_cast<int>(i), data[i].size()));
    }
  });
}

// Whoever returns from a call has done all that others need of it, and may stay away: here until
// all have returned. Also where a word of what has been read may be overtaken.
TEST_F(Fetch, NobodyWaitsForOneWhoHasReturned) {
  for (const char* fault : {"", "reorder=0.5,delay=0.5,refuse=0.3,seed=3"}) {
    setenv("CARILLON_FAULT", fault, 1);
    constexpr int kRanks = 3;
    Meeting outside(kRanks);
    run(kRanks, "bcast=binomial", [&](crl_team_h team, int rank, const auto&) {
      for (int round = 0; round < 20; ++round) {
        const int root = round % kRanks;
        std::vector<std::uint8_t> data(kBytes * 4);
        if (rank == root) data = bytes_of(root, round, data.size());
        expect_ok(crl_bcast(team, data.data(), data.size(), root));
        outside.barrier(rank);
        EXPECT_EQ(data, bytes_of(root, round, data.size()));
      }
    });
    unsetenv("CARILLON_FAULT");
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace carillon::test
