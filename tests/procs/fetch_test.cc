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
#include "schedule/text.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr std::size_t kBytes = 50000;  // of a message
constexpr std::size_t kSmall = 2000;   // notes, statuses, places of exposed bytes

struct Work {
  std::uint64_t gets = 0;
  std::uint64_t copied_bytes = 0;
  crl_traffic_t given = {};
};

Work work_of(crl_context_h context) {
  net::Network& network = *context->engine->network();
  Work work{
      .gets = network.wire().counters().gets,
      .copied_bytes = network.counters().copied_bytes + network.wire().counters().copied_bytes};
  crl_context_traffic(context, &work.given);
  return work;
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
    EXPECT_EQ(work().given.sent_in_place_bytes - before.given.sent_in_place_bytes,
              (kRanks - 1) * kBytes);
    EXPECT_EQ(work().given.sent_copied_bytes, before.given.sent_copied_bytes);
    for (int from = 0; from < kRanks; ++from) {
      const auto theirs = bytes_of(from, 1, kRanks * kBytes);
      const auto at = static_cast<std::ptrdiff_t>(kBytes);
      EXPECT_TRUE(std::equal(theirs.begin() + rank * at, theirs.begin() + (rank + 1) * at,
                             out.begin() + from * at))
          << "from " << from << " to " << rank;
    }
  });
}

// The messages of a stream stand one behind the other, and a get takes several, also a last one
// that is too short for a get of its own. To and from places in the middle of buffers.
TEST_F(Fetch, AStreamIsGotInLongPieces) {
  constexpr int kRanks = 3;
  constexpr std::size_t kBlock = (1 << 20) + (3 << 16), kGap = 24;
  run(kRanks, "", [](crl_team_h team, int rank, const auto& work) {
    std::vector<std::int64_t> bytes, places;
    for (std::size_t i = 0; i < kRanks; ++i) {
      bytes.push_back(kBlock + 100);
      places.push_back(static_cast<std::int64_t>(kGap + i * (kBlock + 100 + kGap)));
    }
    const std::size_t all = kRanks * (kBlock + 100 + kGap) + kGap;
    for (int round = 0; round < 3; ++round) {
      const auto in = bytes_of(rank, round, all);
      std::vector<std::uint8_t> out(all, 0xee);
      const Work before = work();
      expect_ok(crl_alltoallv(team, in.data(), bytes.data(), places.data(), out.data(),
                              bytes.data(), places.data()));
      constexpr std::size_t kGets =
          (kBlock + 100 + net::Fetch::kGetBytes - 1) / net::Fetch::kGetBytes;
      EXPECT_EQ(work().gets - before.gets, kGets * (kRanks - 1));
      EXPECT_LT(work().copied_bytes - before.copied_bytes, kBlock + 100 + 4 * kSmall);
      for (int from = 0; from < kRanks; ++from) {
        const auto theirs = bytes_of(from, round, all);
        const auto at = static_cast<std::ptrdiff_t>(places[static_cast<std::size_t>(from)]);
        const auto mine = theirs.begin() + places[static_cast<std::size_t>(rank)];
        EXPECT_TRUE(std::equal(mine, mine + kBlock + 100, out.begin() + at))
            << "from " << from << " to " << rank;
        EXPECT_TRUE(std::all_of(out.begin() + at - kGap, out.begin() + at,
                                [](std::uint8_t byte) { return byte == 0xee; }));
      }
      EXPECT_EQ(out.back(), 0xee);
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

// A message whose reader wants it in pieces, written by hand as of an allgather of two ranks: the
// network fills the places of the list, a few with each get, and nobody copies a byte.
class FetchToList : public Fetch {
 protected:
  static constexpr std::int64_t kPiece = 3000;
  static constexpr int kPieces = 7;

  void SetUp() override {
    Fetch::SetUp();
    setenv("CARILLON_GATHER_ENTRIES", "3", 1);
    setenv("CARILLON_GATHER_BYTES", "1000", 1);
  }
  void TearDown() override {
    Fetch::TearDown();
    for (const char* name :
         {"CARILLON_GATHER_ENTRIES", "CARILLON_GATHER_BYTES", "CARILLON_SLOT_BYTES"}) {
      unsetenv(name);
    }
  }

  // In the output the pieces stand the other way round.
  static std::string ops_of(int rank) {
    const std::string other = std::to_string(1 - rank);
    std::string ops = "send " + other + " #0 input[0+" + std::to_string(kPieces * kPiece) + "]\n" +
                      "recv " + other + " #0";
    for (int i = kPieces; i-- > 0;) {
      const std::int64_t at = (1 - rank) * kPieces * kPiece + i * kPiece;
      ops += " output[" + std::to_string(at) + "+" + std::to_string(kPiece) + "]";
    }
    return ops + "\n";
  }

  static std::shared_ptr<const Plan> plan_of(crl_team_h team, int rank) {
    const auto schedule = parse_schedule("schedule ranks 2 rank " + std::to_string(rank) +
                                         " scratch 0\n" + ops_of(rank));
    EXPECT_TRUE(schedule.ok()) << schedule.status().to_string();
    carillon::Call call;
    call.shared = {Collective::kAllgather, 2, 0, kPieces * kPiece, 1, true};
    call.rank = rank;
    call.limits = team->team->limits();
    auto plan = lower(schedule.value(), call);
    EXPECT_TRUE(plan.ok()) << plan.status().to_string();
    return std::make_shared<const Plan>(std::move(plan.value()));
  }

  struct Expected {
    std::uint64_t gets = 0, entries = 0, copied_bytes = 0;
  };
  static void expect_work(const Expected& expected) {
    Meeting world(2), members(2);
    expect_processes_ok(2, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      if (context->engine->network() == nullptr) return;  // said in a warning
      crl_team_h team = make_team(context, members.oob(rank));
      expect_ok(settle(team));
      const auto plan = plan_of(team, rank);
      const net::Counters& counters = context->engine->network()->counters();
      carillon::Run one;
      for (int round = 0; round < 5; ++round) {
        const auto in = bytes_of(rank, round, kPieces * kPiece);
        std::vector<std::uint8_t> out(2 * in.size());
        const Work before = work_of(context);
        const std::uint64_t entries = counters.scattered_entries;
        one.prepare(*team->team, {.input = in.data(), .output = out.data()});
        one.set_plan(plan);
        context->engine->run_to_end(one);
        ASSERT_TRUE(one.status().ok()) << one.status().to_string();
        EXPECT_EQ(work_of(context).gets - before.gets, expected.gets);
        EXPECT_EQ(counters.scattered_entries - entries, expected.entries);
        const std::uint64_t copied = work_of(context).copied_bytes - before.copied_bytes;
        EXPECT_GE(copied, expected.copied_bytes);
        EXPECT_LT(copied, expected.copied_bytes + kSmall);
        const auto theirs = bytes_of(1 - rank, round, in.size());
        for (int i = 0; i < kPieces; ++i) {
          const auto from = theirs.begin() + (kPieces - 1 - i) * kPiece;
          const auto to = out.begin() + ((1 - rank) * kPieces + i) * kPiece;
          EXPECT_TRUE(std::equal(from, from + kPiece, to)) << "piece " << i;
        }
      }
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
};

TEST_F(FetchToList, TheNetworkFillsIt) {
  expect_work({.gets = (kPieces + 2) / 3, .entries = kPieces, .copied_bytes = 0});
}

// The pieces of each message are few, and as long as in one.
TEST_F(FetchToList, AListForEachOfSeveralMessages) {
  setenv("CARILLON_SLOT_BYTES", std::to_string(2 * kPiece).c_str(), 1);
  setenv("CARILLON_FETCH_BYTES", "1000", 1);
  expect_work({.gets = (kPieces + 1) / 2, .entries = kPieces, .copied_bytes = 0});
}

TEST_F(FetchToList, PiecesThatAreTooShortAreCopied) {
  setenv("CARILLON_GATHER_BYTES", "4000", 1);
  expect_work({.gets = 1, .entries = 0, .copied_bytes = kPieces * kPiece});
}

TEST_F(FetchToList, WhereTheTeamTakesNoListsItIsCopied) {
  setenv("CARILLON_GATHER_ENTRIES", "0", 1);
  expect_work({.gets = 1, .entries = 0, .copied_bytes = kPieces * kPiece});
}

}  // namespace
}  // namespace carillon::test
