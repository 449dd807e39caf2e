// SPDX-License-Identifier: Apache-2.0
//
// Collectives with tables through the C API, where conformance does not look: in place, and several
// sets of lengths in turn, which must not take each other's schedules.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

using Values = std::vector<std::int64_t>;
constexpr std::int64_t kWord = 8;

void with_team(int ranks, const std::function<void(crl_team_h, int)>& body) {
  Meeting world(ranks), meeting(ranks);
  expect_processes_ok(
      ranks,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, 200);
        crl_team_h team = make_team(context, meeting.oob(rank));
        body(team, rank);
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      20);
}

// Blocks of 2, 0, 3, 1, 2, ... words, from the last rank's to the first's, a word between them.
struct List {
  explicit List(int ranks) : bytes(static_cast<std::size_t>(ranks)), offsets(bytes) {
    std::int64_t next = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      bytes[i] = (i * 2 + 2) % 5 * kWord;
      offsets[i] = next;
      next += bytes[i] + kWord;
    }
    words = static_cast<std::size_t>(next / kWord);
  }
  Values bytes, offsets;
  std::size_t words = 0;

  // Calls body(rank, index within its block, place).
  template <typename Body>
  void each(Body body) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (std::int64_t w = 0; w < bytes[i] / kWord; ++w) {
        body(static_cast<int>(i), w, static_cast<std::size_t>(offsets[i] / kWord + w));
      }
    }
  }
};

class Tables : public testing::TestWithParam<int> {};

TEST_P(Tables, InPlace) {
  const int ranks = GetParam();
  with_team(ranks, [&](crl_team_h team, int rank) {
    const List list(ranks);
    const auto own = static_cast<std::size_t>(list.bytes[static_cast<std::size_t>(rank)]);
    Values all(list.words, -1), mine(list.words, -1);
    list.each([&](int from, std::int64_t index, std::size_t place) {
      all[place] = value_of(from, 1, index);
      if (from == rank) mine[place] = all[place];
    });
    Values out = mine;
    expect_ok(
        crl_allgatherv(team, CRL_IN_PLACE, 0, out.data(), list.bytes.data(), list.offsets.data()));
    EXPECT_EQ(out, all);
    for (int root = 0; root < ranks; ++root) {
      out = mine;
      const Values block = values_of(rank, 1, own / kWord);
      const void* const in = rank == root ? CRL_IN_PLACE : block.data();
      expect_ok(
          crl_gatherv(team, in, own, out.data(), list.bytes.data(), list.offsets.data(), root));
      EXPECT_EQ(out, rank == root ? all : mine);
      Values got(own / kWord, -1);
      void* const to = rank == root ? CRL_IN_PLACE : got.data();
      expect_ok(
          crl_scatterv(team, all.data(), list.bytes.data(), list.offsets.data(), to, own, root));
      EXPECT_EQ(got, rank == root ? Values(own / kWord, -1) : block);
    }
  });
}

// The first of them before the team is ready.
TEST_P(Tables, LengthsInTurn) {
  const int ranks = GetParam();
  with_team(ranks, [&](crl_team_h team, int rank) {
    for (int round = 0; round < 20; ++round) {
      Values counts(static_cast<std::size_t>(ranks));
      std::size_t total = 0, before = 0;
      for (int i = 0; i < ranks; ++i) {
        const int count = (i + round % 5) % 4;
        counts[static_cast<std::size_t>(i)] = count;
        if (i < rank) before += static_cast<std::size_t>(count);
        total += static_cast<std::size_t>(count);
      }
      const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]);
      const Values in = values_of(rank, round, total), sums = sums_of(ranks, round, total);
      Values out(own, -1);
      crl_request_h request = nullptr;
      if (round % 2 == 0) {
        expect_ok(crl_ireduce_scatter(team, in.data(), out.data(), counts.data(), CRL_INT64,
                                      CRL_SUM, &request));
        counts.assign(counts.size(), 0);  // may be used again at once
        expect_ok(crl_request_wait(&request));
      } else {
        expect_ok(
            crl_reduce_scatter(team, in.data(), out.data(), counts.data(), CRL_INT64, CRL_SUM));
      }
      const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(before);
      EXPECT_EQ(out, Values(begin, begin + static_cast<std::ptrdiff_t>(own))) << "round " << round;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Tables, testing::Values(1, 2, 3, 7));

}  // namespace
}  // namespace carillon::test
