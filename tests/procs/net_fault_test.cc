// SPDX-License-Identifier: Apache-2.0
//
// Between nodes, on a network where things go wrong: results are right, or every rank is told that
// there are none; nothing hangs.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "api/objects.h"
#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr std::size_t kCount = 700;  // some messages of the slots below
constexpr int kMostRounds = 100000;

class NetFault : public testing::Test {
 protected:
  void SetUp() override {
    setenv("CARILLON_NODE_RANKS", "1", 1);
    setenv("CARILLON_SLOT_BYTES", "1024", 1);
  }
  void TearDown() override {
    for (const char* name : {"CARILLON_NODE_RANKS", "CARILLON_SLOT_BYTES"}) unsetenv(name);
  }
};

// The rounds that went well; then an error, if `status` is one.
int allreduce_until_error(crl_team_h team, int rank, int ranks, int rounds, crl_status_t* status) {
  for (int round = 0; round < rounds; ++round) {
    const std::vector<std::int64_t> in = values_of(rank, round, kCount);
    std::vector<std::int64_t> out(kCount);
    *status = crl_allreduce(team, in.data(), out.data(), kCount, CRL_INT64, CRL_SUM);
    if (*status != CRL_OK) return round;
    EXPECT_EQ(out, sums_of(ranks, round, kCount)) << "round " << round;
    if (testing::Test::HasFailure()) return round;
  }
  return rounds;
}

// `faulty` of the ranks have a connection that breaks at that post. A rank whose own connections
// are well hears of it: from others, or because the faulty one leaves.
void expect_all_told(int ranks, int faulty, const std::string& fault) {
  Meeting world(ranks), members(ranks);
  expect_processes_ok(
      ranks,
      [&](int rank) {
        if (rank < faulty) setenv("CARILLON_FAULT", fault.c_str(), 1);
        crl_context_h context = make_context(world, rank, false, 200);
        crl_team_h team = make_team(context, members.oob(rank));
        crl_status_t status = CRL_OK;
        allreduce_until_error(team, rank, ranks, kMostRounds, &status);
        EXPECT_NE(status, CRL_OK) << "nothing broke";
        EXPECT_EQ(status, CRL_ERR_PEER_DEAD) << crl_last_error();
        EXPECT_NE(std::string(crl_last_error()).find("rank "), std::string::npos)
            << crl_last_error();
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      20);
}

// The bytes of messages are got, not put.
TEST_F(NetFault, AConnectionThatBreaksUnderAGetIsToldToAll) {
  setenv("CARILLON_FETCH_BYTES", "64", 1);
  for (const int post : {4, 51}) {
    SCOPED_TRACE(post);
    expect_all_told(2, 1, "break=" + std::to_string(post));
    if (HasFailure()) break;
  }
  unsetenv("CARILLON_FETCH_BYTES");
}

TEST_F(NetFault, ABrokenConnectionIsToldToAll) {
  struct Row {
    int ranks, faulty, post;
  };
  for (const Row& row :
       {Row{2, 1, 1}, {2, 1, 100}, {2, 2, 3}, {3, 1, 2}, {3, 1, 100}, {3, 3, 10}}) {
    SCOPED_TRACE(std::to_string(row.faulty) + " of " + std::to_string(row.ranks) + " ranks, post " +
                 std::to_string(row.post));
    expect_all_told(row.ranks, row.faulty, "delay=0.1,break=" + std::to_string(row.post));
    if (HasFailure()) return;
  }
}

// Who has given the team up has said why: that its connections end then says less.
TEST_F(NetFault, AConnectionThatBreaksAfterItsRankGaveUpSaysNothing) {
  Meeting world(2), members(2), end(2);
  expect_processes_ok(2, [&](int rank) {
    crl_context_h context = make_context(world, rank);
    crl_team_h team = make_team(context, members.oob(rank));
    expect_ok(crl_barrier(team));
    if (rank == 1) crl_team_fail(team, CRL_ERR_NO_MEMORY);
    if (rank == 0) {
      while (team->team->endpoint().gave_up(1) == 0) expect_ok(crl_context_progress(context));
      context->engine->network()->give_up_on(1, {Code::kPeerDead, "the connection has ended"});
      std::int64_t data = 0;
      EXPECT_EQ(crl_bcast(team, &data, sizeof data, 0), CRL_ERR_NO_MEMORY) << crl_last_error();
    }
    meet(context, end, rank);
    crl_team_destroy(team);
    crl_context_destroy(context);
  });
}

// What comes twice changes no result, and what comes late or in another order neither.
TEST_F(NetFault, ResultsAreRightWhateverComesWhen) {
  constexpr int kRanks = 3;
  for (const char* const fault :
       {"duplicate=0.3,delay=0.2", "duplicate=0.3,reorder=0.5,delay=0.1,refuse=0.3",
        "lose=0.005,refuse=0.5", "reorder=0.9"}) {
    SCOPED_TRACE(fault);
    Meeting world(kRanks), members(kRanks);
    expect_processes_ok(kRanks, [&](int rank) {
      setenv("CARILLON_FAULT", fault, 1);
      crl_context_h context = make_context(world, rank, false, 100);
      crl_team_h team = make_team(context, members.oob(rank));
      crl_status_t status = CRL_OK;
      EXPECT_EQ(allreduce_until_error(team, rank, kRanks, 100, &status), 100) << crl_last_error();
      crl_team_destroy(team);
      crl_context_destroy(context);
    });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace carillon::test
