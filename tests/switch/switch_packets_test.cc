// SPDX-License-Identifier: Apache-2.0
//
// Many packets of hosts and switches, of which 10 % are lost, 5 % come twice and 20 % are
// overtaken: no wrong bit. 100,000 packets, or CARILLON_TEST_SWITCH_PACKETS.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/switch_team.h"

namespace carillon::aggregate {
namespace {

// Every team makes so many calls, one after another, on the group that it has.
constexpr int kCalls = 50;
constexpr TreeShape kShapes[] = {{3, 2, true}, {7, 3, true}, {13, 16, false}, {8, 2, false}};

TEST(SwitchPackets, OfWhichManyAreLostGiveEachBit) {
  const char* const wanted = std::getenv("CARILLON_TEST_SWITCH_PACKETS");
  const std::uint64_t packets = wanted == nullptr ? 100'000 : std::stoull(wanted);
  std::uint64_t delivered = 0, seed = 1, calls = 0;
  for (; delivered < packets; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint16_t window = seed % 3 == 0 ? 4 : 16, bytes = seed % 8 == 0 ? 1408 : 64;
    Team team(kShapes[seed % std::size(kShapes)], window, bytes, kBad, seed);
    if (HasFatalFailure()) return;
    for (int call = 0; call < kCalls && delivered + team.net().delivered() < packets; ++call) {
      allreduce_any(team, team.random()() % (4U * bytes), call % 2 == 1);
      if (HasFatalFailure()) return;
      ++calls;
    }
    delivered += team.net().delivered();
  }
  std::printf("%llu packets delivered, %llu allreduces, %llu trees of switches\n",
              static_cast<unsigned long long>(delivered), static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(seed - 1));
}

}  // namespace
}  // namespace carillon::aggregate
