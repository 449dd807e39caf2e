// SPDX-License-Identifier: Apache-2.0
//
// Credit between nodes where nothing goes the other way: whatever was left untold by the
// collectives before, a stream of any length goes through. Nobody may wait for what ranks tell each
// other when they look for dead peers, which here would be every 50 s.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "support/calls.h"

namespace carillon::test {
namespace {

constexpr int kLookEveryMs = 200000;
constexpr std::size_t kSlotBytes = 1024;

// The parameter: from which size on messages are got by the reader; 0: none.
class NetCredit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("CARILLON_NODE_RANKS", "1", 1);
    setenv("CARILLON_SLOT_BYTES", "1024", 1);
    setenv("CARILLON_ALGORITHM", "bcast=binomial", 1);
    setenv("CARILLON_FETCH_BYTES", GetParam(), 1);
  }
  void TearDown() override {
    for (const char* name : {"CARILLON_NODE_RANKS", "CARILLON_SLOT_BYTES", "CARILLON_ALGORITHM",
                             "CARILLON_FETCH_BYTES"}) {
      unsetenv(name);
    }
  }
};

void bcast(crl_team_h team, int rank, std::size_t messages, int round) {
  std::vector<std::uint8_t> data(messages * kSlotBytes);
  std::vector<std::uint8_t> wanted(data.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = static_cast<std::uint8_t>(value_of(0, round, static_cast<std::int64_t>(i)));
  }
  if (rank == 0) data = wanted;
  expect_ok(crl_bcast(team, data.data(), data.size(), 0));
  EXPECT_EQ(data, wanted) << messages << " messages, round " << round;
}

// Every length of stream after every number of messages that may be left untold.
TEST_P(NetCredit, StreamsAfterShortOnes) {
  for (const int ranks : {2, 3}) {
    Meeting world(ranks), members(ranks);
    expect_processes_ok(
        ranks,
        [&](int rank) {
          crl_context_h context = make_context(world, rank, false, kLookEveryMs);
          crl_team_h team = make_team(context, members.oob(rank));
          int round = 0;
          for (std::size_t messages = 1; messages <= 20; ++messages) {
            for (int before = 0; before < 5; ++before) {
              for (int i = 0; i < before; ++i) bcast(team, rank, 1, ++round);
              bcast(team, rank, messages, ++round);
              if (testing::Test::HasFailure()) return;
            }
          }
          crl_team_destroy(team);
          crl_context_destroy(context);
        },
        40);
  }
}

// Several in flight, the longer ones behind.
TEST_P(NetCredit, StreamsInFlightTogether) {
  Meeting world(2), members(2);
  expect_processes_ok(
      2,
      [&](int rank) {
        crl_context_h context = make_context(world, rank, false, kLookEveryMs);
        crl_team_h team = make_team(context, members.oob(rank));
        for (std::size_t messages = 1; messages <= 12; ++messages) {
          std::vector<std::vector<std::uint8_t>> data;
          std::vector<crl_request_h> requests(4);
          for (std::size_t i = 0; i < requests.size(); ++i) {
            data.emplace_back((i + 1) * messages * kSlotBytes / 2,
                              static_cast<std::uint8_t>(rank == 0 ? messages + i : 0));
          }
          for (std::size_t i = 0; i < requests.size(); ++i) {
            expect_ok(crl_ibcast(team, data[i].data(), data[i].size(), 0, &requests[i]));
          }
          for (std::size_t i = requests.size(); i-- > 0;) {
            expect_ok(crl_request_wait(&requests[i]));
            EXPECT_EQ(data[i], std::vector<std::uint8_t>(data[i].size(),
                                                         static_cast<std::uint8_t>(messages + i)));
          }
        }
        crl_team_destroy(team);
        crl_context_destroy(context);
      },
      40);
}

INSTANTIATE_TEST_SUITE_P(FetchFrom, NetCredit, testing::Values("0", "1024", "512"));

}  // namespace
}  // namespace carillon::test
