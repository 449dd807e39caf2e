// SPDX-License-Identifier: Apache-2.0
//
// Blocks of uneven lengths within the node (the ops send and recv): from memory of crl_alloc they
// are read where they stand, from private memory in one copy; and nobody sees the sender's memory
// change when its call has ended.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

enum class Kind { kAlltoallv, kAllgatherv, kGatherv, kScatterv };
constexpr std::array kKinds = {Kind::kAlltoallv, Kind::kAllgatherv, Kind::kGatherv,
                               Kind::kScatterv};

// What one rank sends and receives, in elements of 8 bytes; the last rank is the root.
struct Exchange {
  Kind kind;
  int rank, ranks;
  std::int64_t unit;

  [[nodiscard]] int root() const { return ranks - 1; }
  [[nodiscard]] std::int64_t count(int from, int to) const {
    const auto length = [&](int a, int b) { return unit * (1 + (a + 2 * b) % 3); };
    switch (kind) {
      case Kind::kAlltoallv: return length(from, to);
      case Kind::kAllgatherv: return length(from, 0);
      case Kind::kGatherv: return to == root() ? length(from, 0) : 0;
      case Kind::kScatterv: return from == root() ? length(0, to) : 0;
    }
    return 0;
  }
  // Of the block within what `from` sends.
  [[nodiscard]] std::int64_t place(int from, int to) const {
    if (kind == Kind::kAllgatherv || kind == Kind::kGatherv) return 0;
    std::int64_t at = 0;
    for (int before = 0; before < to; ++before) at += count(from, before);
    return at;
  }
  [[nodiscard]] std::vector<std::int64_t> values(int from, int to, std::int64_t round) const {
    std::vector<std::int64_t> block(static_cast<std::size_t>(count(from, to)));
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = value_of(from, round, place(from, to) + static_cast<std::int64_t>(i));
    }
    return block;
  }
  [[nodiscard]] std::vector<std::int64_t> sent(std::int64_t round) const {
    return values_of(rank, round,
                     static_cast<std::size_t>(place(rank, ranks)) +
                         static_cast<std::size_t>(count(rank, root())));
  }
  [[nodiscard]] std::vector<std::int64_t> received(std::int64_t round) const {
    std::vector<std::int64_t> all;
    for (int from = 0; from < ranks; ++from) {
      const auto block = values(from, rank, round);
      all.insert(all.end(), block.begin(), block.end());
    }
    return all;
  }
  [[nodiscard]] std::uint64_t bytes_to_others() const {
    std::int64_t sum = 0;
    for (int to = 0; to < ranks; ++to) sum += to == rank ? 0 : count(rank, to) * 8;
    return static_cast<std::uint64_t>(sum);
  }
  crl_status_t start(crl_team_h team, const void* in, void* out, crl_request_h* request) const {
    std::vector<std::int64_t> send, from, recv, to;
    std::int64_t end = 0;
    for (int other = 0; other < ranks; ++other) {
      send.push_back(count(rank, other) * 8);
      from.push_back(place(rank, other) * 8);
      recv.push_back(count(other, rank) * 8);
      to.push_back(end);
      end += recv.back();
    }
    const auto own = static_cast<std::size_t>(kind == Kind::kScatterv ? count(root(), rank) * 8
                                                                      : count(rank, root()) * 8);
    switch (kind) {
      case Kind::kAlltoallv:
        return crl_ialltoallv(team, in, send.data(), from.data(), out, recv.data(), to.data(),
                              request);
      case Kind::kAllgatherv:
        return crl_iallgatherv(team, in, own, out, recv.data(), to.data(), request);
      case Kind::kGatherv:
        return crl_igatherv(team, in, own, out, recv.data(), to.data(), root(), request);
      case Kind::kScatterv:
        return crl_iscatterv(team, in, send.data(), from.data(), out, own, root(), request);
    }
    return CRL_ERR_INVALID_ARGUMENT;
  }
};

void PrintTo(Kind kind, std::ostream* out) {
  *out << std::array{"alltoallv", "allgatherv", "gatherv",
                     "scatterv"}[static_cast<std::size_t>(kind)];
}

// Memory of the heap's or of the process's own.
class Memory {
 public:
  Memory(crl_context_h context, std::size_t bytes, bool in_heap) : context_(context) {
    if (in_heap) {
      shared_ = crl_alloc(context, bytes);
      EXPECT_NE(shared_, nullptr);
    } else {
      own_.resize(bytes);
    }
  }
  ~Memory() { crl_free(context_, shared_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::int64_t* data() {
    return static_cast<std::int64_t*>(shared_ != nullptr ? shared_
                                                         : static_cast<void*>(own_.data()));
  }

 private:
  crl_context_h context_;
  void* shared_ = nullptr;
  std::vector<char> own_;
};

// Three at once, so that two are not the team's oldest. What was sent is written over at once.
void exchange(crl_team_h team, crl_context_h context, const Exchange& what, bool in_heap) {
  constexpr std::size_t kAtOnce = 3;
  std::vector<std::unique_ptr<Memory>> in, out;
  std::array<crl_request_h, kAtOnce> requests = {};
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    const auto round = static_cast<std::int64_t>(i);
    const auto sent = what.sent(round);
    const std::size_t received = what.received(round).size() * 8;
    in.push_back(std::make_unique<Memory>(context, sent.size() * 8, in_heap));
    out.push_back(std::make_unique<Memory>(context, received + 8, in_heap));
    std::copy(sent.begin(), sent.end(), in[i]->data());
    expect_ok(what.start(team, in[i]->data(), out[i]->data(), &requests[i]));
  }
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    expect_ok(crl_request_wait(&requests[i]));
    const auto round = static_cast<std::int64_t>(i);
    std::fill_n(in[i]->data(), what.sent(round).size(), std::int64_t{-1});
    const auto expected = what.received(round);
    EXPECT_EQ(std::vector<std::int64_t>(out[i]->data(), out[i]->data() + expected.size()), expected)
        << testing::PrintToString(what.kind) << ", blocks of " << what.unit;
  }
}

// What a put cannot lend, a send cannot. Where it is learned, some are lent of many.
bool lends(crl_team_h team, crl_context_h context, int ranks, int calls = 1) {
  std::vector<char> in(100000, 'a'), out(in.size() * static_cast<std::size_t>(ranks));
  crl_traffic_t before, after;
  crl_context_traffic(context, &before);
  std::vector<char> received(out.size());
  for (int call = 0; call < calls; ++call) {
    expect_ok(crl_alltoall(team, out.data(), received.data(), in.size()));
  }
  crl_context_traffic(context, &after);
  return after.lent_bytes > before.lent_bytes;
}

class UnevenBlocks : public testing::TestWithParam<Kind> {};

// No byte of them goes by the pool. The longest have more messages than a channel has lines.
void expect_one_copy(Kind kind, bool in_heap) {
  for (const int ranks : {2, 3, 5}) {
    Meeting world(ranks), meeting(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      setenv("CARILLON_LEND_BYTES", in_heap ? "0" : "64", 1);
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      if (!in_heap && !lends(team, context, ranks)) GTEST_SKIP() << "the kernel forbids it here";
      for (const std::int64_t unit : {1024, 8192, 90000}) {
        const Exchange what{kind, rank, ranks, unit};
        crl_traffic_t before, after;
        crl_context_traffic(context, &before);
        exchange(team, context, what, in_heap);
        crl_context_traffic(context, &after);
        EXPECT_EQ(after.copied_bytes, before.copied_bytes);
        EXPECT_EQ(in_heap ? after.in_place_bytes - before.in_place_bytes
                          : after.lent_bytes - before.lent_bytes,
                  3 * what.bytes_to_others());
      }
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

TEST_P(UnevenBlocks, OfTheHeapAreReadWhereTheyStand) { expect_one_copy(GetParam(), true); }
TEST_P(UnevenBlocks, OfPrivateMemoryAreReadThere) { expect_one_copy(GetParam(), false); }

// The last of a block's messages may be so short that it comes in its line, when the bytes have
// been read; and what is read at once may be no whole number of messages.
TEST_P(UnevenBlocks, MayEndInALine) {
  constexpr int kRanks = 3;
  for (const char* slot_bytes : {"65536", "40000"}) {
    Meeting world(kRanks), meeting(kRanks);
    expect_processes_ok(kRanks, [&](int rank) {
      setenv("CARILLON_LEND_BYTES", "16384", 1);
      setenv("CARILLON_SLOT_BYTES", slot_bytes, 1);
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      for (const std::int64_t unit : {8193, 131073}) {
        for (int i = 0; i < 3; ++i) {
          exchange(team, context, {GetParam(), rank, kRanks, unit}, false);
        }
      }
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

// All ways of messages have been tried by then.
constexpr int kRounds = 256;

// What more than two ranks of a node reduce goes through shared memory, unless asked for otherwise.
TEST(Reduced, IsLentBetweenTwoRanksOnly) {
  constexpr std::size_t kCount = 30000;
  for (const int ranks : {2, 3, 4}) {
    Meeting world(ranks), meeting(ranks);
    expect_processes_ok(ranks, [&](int rank) {
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      const bool can_lend = lends(team, context, ranks, kRounds);
      crl_traffic_t before, after;
      crl_context_traffic(context, &before);
      for (int round = 0; round < kRounds; ++round) {
        const auto in = values_of(rank, round, kCount);
        std::vector<std::int64_t> out(kCount);
        expect_ok(crl_allreduce(team, in.data(), out.data(), kCount, CRL_INT64, CRL_SUM));
        EXPECT_EQ(out, sums_of(ranks, round, kCount));
      }
      crl_context_traffic(context, &after);
      EXPECT_EQ(after.lent_bytes > before.lent_bytes, ranks == 2 && can_lend) << ranks << " ranks";
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
  }
}

// Left alone, long messages go one way and now and then the other.
TEST_P(UnevenBlocks, GoBothWaysUntilItIsKnownWhichIsFaster) {
  constexpr int kRanks = 2;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, meeting.oob(rank));
    if (!lends(team, context, kRanks, kRounds)) GTEST_SKIP() << "the kernel forbids it here";
    crl_traffic_t before, after;
    crl_context_traffic(context, &before);
    const Exchange what{GetParam(), rank, kRanks, 8192};
    for (int i = 0; i < kRounds; ++i) exchange(team, context, what, false);
    crl_context_traffic(context, &after);
    if (what.bytes_to_others() > 0) {
      EXPECT_GT(after.lent_bytes, before.lent_bytes);
      EXPECT_GT(after.copied_bytes, before.copied_bytes);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Blocks that go to shared memory go past the caches there, if that is asked for: all but what a
// line holds.
TEST(Uncached, AreAllThatAreLongEnough) {
  constexpr int kRanks = 3;
  constexpr std::size_t kBlock = 5000;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    setenv("CARILLON_LEND_BYTES", "0", 1);
    for (const auto& [from_bytes, uncached] :
         {std::pair{"4096", true}, std::pair{"5001", false}, std::pair{"0", false}}) {
      setenv("CARILLON_UNCACHED_BYTES", from_bytes, 1);
      crl_context_h context = make_context(world, rank);
      crl_team_h team = make_team(context, meeting.oob(rank));
      const std::vector<char> in(kBlock, static_cast<char>('a' + rank));
      std::vector<char> out(kRanks * kBlock);
      crl_traffic_t before, after;
      crl_context_traffic(context, &before);
      expect_ok(crl_allgather(team, in.data(), out.data(), kBlock));
      crl_context_traffic(context, &after);
      EXPECT_EQ(out[kBlock], 'b');
      EXPECT_EQ(out.back(), 'c');
      const std::uint64_t copied = after.copied_bytes - before.copied_bytes;
      EXPECT_EQ(copied, kBlock);
      EXPECT_EQ(after.uncached_bytes - before.uncached_bytes, uncached ? copied : 0) << from_bytes;
      crl_team_destroy(team);
      crl_context_destroy(context);
    }
  });
}

// What is learned is of the process: teams that end after a few calls do not begin anew.
TEST(ShortLivedTeams, GoBothWays) {
  constexpr int kRanks = 2, kTeams = 40, kCalls = 4;
  constexpr std::size_t kBlock = 65536;
  Meeting world(kRanks), meeting(kRanks);
  expect_processes_ok(kRanks, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    std::vector<char> in(kRanks * kBlock, 'a'), out(kRanks * kBlock);
    crl_traffic_t before, after;
    crl_context_traffic(context, &before);
    for (int i = 0; i < kTeams; ++i) {
      crl_team_h team = make_team(context, meeting.oob(rank));
      for (int call = 0; call < kCalls; ++call) {
        expect_ok(crl_alltoall(team, in.data(), out.data(), kBlock));
      }
      crl_team_destroy(team);
    }
    crl_context_traffic(context, &after);
    EXPECT_GT(after.copied_bytes, before.copied_bytes);
    crl_context_destroy(context);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, UnevenBlocks, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return testing::PrintToString(kind.param); });

}  // namespace
}  // namespace carillon::test
