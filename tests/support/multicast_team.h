// SPDX-License-Identifier: Apache-2.0
//
// A team of five processes on three made-up nodes that broadcasts by multicast over the machine's
// loopback.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/calls.h"

namespace carillon::test {

inline constexpr int kRanks = 5;
inline constexpr const char* kNodes = "2,2,1";  // leaders 0, 2, 4

inline void set_environment(const char* algorithm, const std::string& multicast) {
  setenv("CARILLON_NODE_RANKS", kNodes, 1);
  setenv("CARILLON_ALGORITHM", ("bcast=" + std::string(algorithm)).c_str(), 1);
  setenv("CARILLON_MULTICAST", multicast.c_str(), 1);
  setenv("CARILLON_MULTICAST_JOIN_S", "60", 1);
}

inline std::string id_of(const char* algorithm) { return "bcast." + std::string(algorithm); }

// `rounds` broadcasts from all roots in turn, of different lengths; how many bytes those were.
inline std::size_t broadcast_rounds(crl_team_h team, int rounds) {
  const int rank = crl_team_rank(team);
  std::size_t bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    const int root = round % crl_team_size(team);
    const std::size_t count = std::size_t{1} << (round * 5 % 17);
    const auto expected = values_of(root, round, count);
    std::vector<std::int64_t> data = rank == root ? expected : std::vector<std::int64_t>(count);
    expect_ok(crl_bcast(team, data.data(), count * sizeof data[0], root), "bcast");
    EXPECT_EQ(data, expected) << "round " << round << ", rank " << rank;
    if (testing::Test::HasFailure()) break;
    bytes += count * sizeof data[0];
  }
  return bytes;
}

}  // namespace carillon::test
