// SPDX-License-Identifier: Apache-2.0
//
// crl_repeat: what the call itself would do, as long as it stands prepared; after that nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

using Values = std::vector<std::int64_t>;

struct Kind {
  std::string name;
  std::function<crl_status_t(crl_team_h, const void* in, void* out, std::size_t count)> call;
};

std::vector<Kind> kinds(int root) {
  return {
      {"barrier",
       [](crl_team_h team, const void*, void*, std::size_t) { return crl_barrier(team); }},
      {"bcast", [=](crl_team_h team, const void*, void* out,
                    std::size_t count) { return crl_bcast(team, out, 8 * count, root); }},
      {"reduce",
       [=](crl_team_h team, const void* in, void* out, std::size_t count) {
         return crl_reduce(team, in, out, count, CRL_INT64, CRL_SUM, root);
       }},
      {"allreduce",
       [](crl_team_h team, const void* in, void* out, std::size_t count) {
         return crl_allreduce(team, in, out, count, CRL_INT64, CRL_SUM);
       }},
      {"reduce_scatter_block",
       [](crl_team_h team, const void* in, void* out, std::size_t count) {
         return crl_reduce_scatter_block(team, in, out, count, CRL_INT64, CRL_SUM);
       }},
      {"allgather", [](crl_team_h team, const void* in, void* out,
                       std::size_t count) { return crl_allgather(team, in, out, 8 * count); }},
      {"gather", [=](crl_team_h team, const void* in, void* out,
                     std::size_t count) { return crl_gather(team, in, out, 8 * count, root); }},
      {"scatter", [=](crl_team_h team, const void* in, void* out,
                      std::size_t count) { return crl_scatter(team, in, out, 8 * count, root); }},
      {"alltoall", [](crl_team_h team, const void* in, void* out,
                      std::size_t count) { return crl_alltoall(team, in, out, 8 * count); }},
      {"scan",
       [](crl_team_h team, const void* in, void* out, std::size_t count) {
         return crl_scan(team, in, out, count, CRL_INT64, CRL_SUM);
       }},
      {"exscan",
       [](crl_team_h team, const void* in, void* out, std::size_t count) {
         return crl_exscan(team, in, out, count, CRL_INT64, CRL_SUM);
       }},
  };
}

void with_team(int ranks, const std::function<void(crl_team_h, int)>& body) {
  Meeting world(ranks), meeting(ranks);
  expect_processes_ok(ranks, [&](int rank) {
    crl_context_h context = make_context(world, rank, false, 200);
    crl_team_h team = make_team(context, meeting.oob(rank));
    expect_ok(settle(team));
    body(team, rank);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// Rounds of it, in buffers by turns, each beside the call itself with the same input.
void expect_same(const Kind& kind, crl_team_h team, int rank, std::size_t count, bool in_place) {
  const std::size_t all = count * static_cast<std::size_t>(crl_team_size(team));
  crl_repeatable_t repeatable{};
  int repeated = 0;
  std::vector<Values> outs(2);
  for (int round = 0; round < 6; ++round) {
    const Values in = values_of(rank, round, all);
    Values expected = values_of(rank, 100 + round, all);
    outs[static_cast<std::size_t>(round % 2)] = expected;
    Values& out = outs[static_cast<std::size_t>(round % 2)];
    const bool is_bcast = kind.name == "bcast", is_barrier = kind.name == "barrier";
    const void* const from = in_place ? CRL_IN_PLACE : static_cast<const void*>(in.data());
    const void* const given = is_bcast ? out.data() : is_barrier ? nullptr : from;
    crl_status_t status = CRL_ERR_INTERNAL;
    if (crl_repeat(team, repeatable, given, is_barrier ? nullptr : out.data(), &status) == 1) {
      ++repeated;
    } else {
      status = kind.call(team, from, out.data(), count);
      repeatable = crl_team_last_call(team);
    }
    expect_ok(status, kind.name.c_str());
    expect_ok(kind.call(team, from, expected.data(), count), kind.name.c_str());
    EXPECT_EQ(out, expected) << kind.name << " of " << count << ", rank " << rank << ", round "
                             << round;
  }
  if (count <= 6 && crl_team_size(team) <= 5) {
    EXPECT_EQ(repeated, 5) << kind.name;
  }
}

class Repeat : public testing::TestWithParam<int> {};

TEST_P(Repeat, DoesWhatTheCallDoes) {
  with_team(GetParam(), [](crl_team_h team, int rank) {
    const int size = crl_team_size(team);
    for (const std::size_t count : {1UL, 6UL, 300UL, 20000UL}) {
      for (const int root : {0, size - 1}) {
        for (const Kind& kind : kinds(root)) expect_same(kind, team, rank, count, false);
      }
      for (const Kind& kind : kinds(0)) {
        const bool can = kind.name == "allreduce" || kind.name == "allgather" ||
                         kind.name == "scan" || kind.name == "exscan" || kind.name == "alltoall";
        if (can) expect_same(kind, team, rank, count, true);
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Repeat, testing::Values(1, 2, 3, 5, 8));

TEST(RepeatOfAFormerEdition, DoesNothing) {
  with_team(2, [](crl_team_h team, int rank) {
    Values in = values_of(rank, 0, 1), out(1);
    crl_status_t status = CRL_OK;
    EXPECT_EQ(crl_repeat(team, crl_repeatable_t{}, in.data(), out.data(), &status), 0);
    EXPECT_EQ(crl_team_last_call(team).edition, 0u);
    expect_ok(crl_allreduce(team, in.data(), out.data(), 1, CRL_INT64, CRL_SUM));
    const crl_repeatable_t first = crl_team_last_call(team);
    EXPECT_EQ(crl_repeat(nullptr, first, in.data(), out.data(), &status), 0);
    EXPECT_EQ(crl_repeat(team, first, in.data(), out.data(), &status), 1);
    // More calls than a team keeps.
    Values longer(64), sums(64);
    for (std::size_t count = 2; count <= 64; ++count) {
      expect_ok(crl_allreduce(team, longer.data(), sums.data(), count, CRL_INT64, CRL_SUM));
    }
    EXPECT_EQ(crl_repeat(team, first, in.data(), out.data(), &status), 0);
    // Nor is one with tables of its own ever repeated.
    const std::vector<std::int64_t> bytes(2, 8), offsets = {0, 8};
    Values two(2), got(2);
    expect_ok(crl_alltoallv(team, two.data(), bytes.data(), offsets.data(), got.data(),
                            bytes.data(), offsets.data()));
    EXPECT_EQ(crl_team_last_call(team).edition, 0u);
    expect_ok(crl_barrier(team));
  });
}

TEST(RepeatOfTheOneBeforeLast, IsTheLastCallThen) {
  with_team(2, [](crl_team_h team, int rank) {
    const Values in = values_of(rank, 0, 2);
    Values out(2), sums(2);
    expect_ok(crl_allreduce(team, in.data(), sums.data(), 2, CRL_INT64, CRL_SUM));
    const crl_repeatable_t sum = crl_team_last_call(team);
    expect_ok(crl_allreduce(team, in.data(), out.data(), 1, CRL_INT64, CRL_MAX));
    crl_status_t status = CRL_ERR_INTERNAL;
    for (int round = 0; round < 3; ++round) {
      const crl_repeatable_t call = round == 0 ? sum : crl_team_last_call(team);
      out.assign(2, -1);
      ASSERT_EQ(crl_repeat(team, call, in.data(), out.data(), &status), 1);
      expect_ok(status);
      EXPECT_EQ(out, sums) << "round " << round;
    }
  });
}

TEST(RepeatOnAFailedTeam, SaysWhatTheCallSays) {
  with_team(3, [](crl_team_h team, int rank) {
    Values in = values_of(rank, 0, 1), out(1);
    expect_ok(crl_allreduce(team, in.data(), out.data(), 1, CRL_INT64, CRL_SUM));
    const crl_repeatable_t last = crl_team_last_call(team);
    if (rank == 1) crl_team_fail(team, CRL_ERR_NO_MEMORY);
    crl_status_t status = CRL_OK;
    ASSERT_EQ(crl_repeat(team, last, in.data(), out.data(), &status), 1);
    EXPECT_EQ(status, CRL_ERR_NO_MEMORY);
    EXPECT_EQ(crl_allreduce(team, in.data(), out.data(), 1, CRL_INT64, CRL_SUM), CRL_ERR_NO_MEMORY);
  });
}

}  // namespace
}  // namespace carillon::test
