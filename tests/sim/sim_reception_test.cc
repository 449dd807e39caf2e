// SPDX-License-Identifier: Apache-2.0
//
// Multicasts to nodes in the simulator, where the times can be added up on paper: who of a node
// receives them, if its first rank comes in time or late.
#include <gtest/gtest.h>

#include <vector>

#include "support/paper_machine.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kPatience = 200'000 * kNs;
constexpr std::int64_t kLatency = 1000 * kNs, kBytes = 4 * kNs, kSwitch = 43 * kNs;
// 40 bytes are two datagrams; the payload is copied on either side, and out of shared memory.
constexpr std::int64_t kGroupCopy = (31 + 2) * kNs;
constexpr std::int64_t kMulticast = (3 + 2 * 37) * kNs + kGroupCopy;
constexpr std::int64_t kReceive = (5 + 2 * 37) * kNs + kGroupCopy;
constexpr std::int64_t kTake = 10 * kNs + kGroupCopy;
constexpr std::int64_t kSeen = 80 * kNs;
constexpr std::int64_t kCame = kMulticast + kBytes + kLatency + kSwitch;

Machine with_multicast() {
  Machine m = paper();
  m.datagram = {.mtu_bytes = 30, .fragment_ps = 37 * kNs, .deliver_ps = 41 * kNs};
  m.multicast = {.replicate_ps = 43 * kNs, .ack_ps = 2000 * kNs, .patience_ps = kPatience};
  return m;
}

// Rank 0 sends `count` messages to the two ranks of the other node.
std::vector<std::int64_t> times(const std::vector<std::int64_t>& starts, int count = 1) {
  const auto emit = [count](const Call& call, Builder& b) {
    for (int i = 0; i < count; ++i) {
      if (call.rank == 0) b.multicast(Channel::kNodes, b.input({0, 40}));
      if (call.rank != 0) b.receive(Channel::kNodes, 0, b.output({0, 40}));
    }
  };
  sim::Job job = hand_job(3, 1, emit);
  job.call.limits.nodes = std::make_shared<Nodes>(std::vector<std::int32_t>{0, 1, 1});
  return simulated(job, with_multicast(), {.starts_ps = starts, .rank_times = true}).rank_ps;
}

TEST(Reception, TheFirstOfTheNodeReceivesForAll) {
  const auto all = times({0, 0, 0});
  EXPECT_EQ(all[0], kMulticast);
  EXPECT_EQ(all[1], kCame + kReceive + kTake);
  EXPECT_EQ(all[2], kCame + kReceive + kSeen + kTake);
}

TEST(Reception, WhoComesLaterFindsItInSharedMemory) {
  EXPECT_EQ(times({0, 0, 5000 * kNs})[2], kTake);
}

// It comes before the other one's patience is at its end.
TEST(Reception, ALateReceiverIsWaitedForSoLong) {
  const std::int64_t late = kPatience - 1;
  const auto all = times({0, late, 0});
  EXPECT_EQ(all[1], kReceive + kTake);
  EXPECT_EQ(all[2], late + kReceive + kSeen + kTake);
}

// The other one then asks for what had come, and gets it alone.
TEST(Reception, AndNoLonger) {
  for (const std::int64_t late : {kPatience + 1, 50 * kPatience}) {
    const auto all = times({0, late, 0});
    const std::int64_t again = kPatience + kLatency + kBytes + kLatency;
    EXPECT_EQ(all[2], again + kReceive + kTake) << late;
    if (late > 2 * kPatience) {
      EXPECT_EQ(all[1], kTake) << late;
    }
  }
}

// What is sent only then comes to who has taken over.
TEST(Reception, NothingIsAskedForThatHasNotCome) {
  const std::int64_t root = 3 * kPatience;
  EXPECT_EQ(times({root, 50 * kPatience, 0})[2], root + kCame + kReceive + kTake);
}

// A receiver stays the receiver: the second message comes to it, and the late one finds both.
TEST(Reception, ManyMessages) {
  const auto one = times({0, 50 * kPatience, 0}, 1);
  const auto three = times({0, 50 * kPatience, 0}, 3);
  EXPECT_GT(three[2], one[2]);
  EXPECT_LT(three[2], one[2] + 3 * (kReceive + kTake + kLatency));
  EXPECT_EQ(three[1], 3 * kTake);
}

}  // namespace
}  // namespace carillon::test
