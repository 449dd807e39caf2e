// SPDX-License-Identifier: Apache-2.0
//
// Copies, lists and a node's memory, with times that can be added up on paper.
#include <gtest/gtest.h>

#include <vector>

#include "machine/costs.h"
#include "support/paper_machine.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

using Times = std::vector<std::int64_t>;

constexpr std::int64_t kPut = (3 + 11 + 13) * kNs;
constexpr std::int64_t kWait = (5 + 17) * kNs;
constexpr std::int64_t kLatency = 1000 * kNs;

// A copy of this keeps its rank busy for kCopy, and its node's memory for kMemory.
constexpr Range kLong{0, 40'000};
constexpr std::int64_t kCopy = (31 + 2000) * kNs;
constexpr std::int64_t kMemory = 2000 * kNs;

Machine with_memory() {
  Machine m = paper();
  m.memory.node_byte_fs = 50'000;
  m.network.per_byte_fs = 10'000;
  return m;
}

Times times(const sim::Job& job, const Machine& machine) {
  return simulated(job, machine, {.rank_times = true}).rank_ps;
}

TEST(Memory, IsSharedByANode) {
  const auto emit = [](const Call&, Builder& b) { b.copy(b.output(kLong), b.input(kLong)); };
  EXPECT_EQ(times(hand_job(2, 1, emit), with_memory()), (Times{kCopy, kCopy}));
  EXPECT_EQ(times(hand_job(2, 2, emit), with_memory()), (Times{kCopy, 2 * kMemory}));
}

// 0 and 1, of one node, write to 2 and 3 of another one.
void write_across(const Call& call, Builder& b) {
  if (call.rank < 2) b.put(call.rank + 2, b.input(kLong));
  if (call.rank >= 2) b.wait(call.rank - 2);
}

TEST(Memory, IsUsedByCopiesIntoRegisteredMemory) {
  Machine m = with_memory();
  Times posted = times(hand_job(4, 2, write_across), m);
  EXPECT_EQ(posted[0], kPut);
  EXPECT_EQ(posted[1], kPut) << "the NIC reads where it is";
  m.one_sided.stage_puts = true;
  posted = times(hand_job(4, 2, write_across), m);
  EXPECT_EQ(posted[0], kPut + kCopy);
  EXPECT_EQ(posted[1], 2 * kMemory);
}

// A sender of each of two nodes, their readers on a third.
TEST(Memory, IsUsedByEagerMessages) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0 || call.rank == 2) b.send(4 + call.rank / 2, b.input(kLong));
    if (call.rank == 1) b.copy(b.output(kLong), b.input(kLong));
    if (call.rank >= 4) b.recv((call.rank - 4) * 2, b.output(kLong));
  };
  Machine m = with_memory();
  m.two_sided.eager_bytes = 100'000;
  const Times ends = times(hand_job(6, 2, emit), m);
  const std::int64_t sent = (3 + 19) * kNs + kCopy;
  const std::int64_t came = sent + 400 * kNs + kLatency;
  EXPECT_EQ(ends[0], sent);
  EXPECT_EQ(ends[1], 2 * kMemory) << "beside the copy in";
  EXPECT_EQ(ends[4], came + (5 + 23) * kNs + kCopy);
  EXPECT_EQ(ends[5], came + 2 * kMemory) << "beside the other copy out";
}

TEST(Memory, IsUsedByMessagesWithinTheNode) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank % 2 == 0) b.send(call.rank + 1, b.input(kLong));
    if (call.rank % 2 == 1) b.recv(call.rank - 1, b.output(kLong));
  };
  const Times ends = times(hand_job(4, 4, emit), with_memory());
  const std::int64_t written = (10 + 4 + 2400) * kNs;
  // The memory is busy with one after the other: in, in, out, out.
  EXPECT_EQ(ends, (Times{written, 3 * kMemory, 2 * kMemory, 4 * kMemory}));
}

TEST(Memory, IsUsedByStaging) {
  sim::Job job = hand_job(4, 2, [](const Call&, Builder&) {});
  job.call.shared.count = kLong.length;
  Machine m = with_memory();
  m.one_sided.stage_input = true;
  EXPECT_EQ(times(job, m), (Times{kCopy, 2 * kMemory, kCopy, 2 * kMemory}));
  m.one_sided.stage_output = true;
  EXPECT_EQ(times(job, m), (Times{3 * kMemory, 4 * kMemory, 3 * kMemory, 4 * kMemory}));
}

TEST(Memory, IsUsedByMulticasts) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.multicast(Channel::kTeam, b.input(kLong));
    if (call.rank == 1) b.copy(b.output(kLong), b.input(kLong));
    if (call.rank >= 2) b.receive(Channel::kTeam, 0, b.output(kLong));
  };
  Machine m = with_memory();
  m.datagram = {.mtu_bytes = 40'000, .fragment_ps = 37 * kNs, .deliver_ps = 41 * kNs};
  m.multicast = {.replicate_ps = 43 * kNs, .ack_ps = 2000 * kNs};
  const Times ends = times(hand_job(4, 2, emit), m);
  EXPECT_EQ(ends[0], (3 + 37) * kNs + kCopy);
  EXPECT_EQ(ends[1], 2 * kMemory) << "beside the copy of the multicast";
  const std::int64_t there = ends[0] + (400 + 43) * kNs + kLatency;
  EXPECT_EQ(ends[2], there + (5 + 37) * kNs + kCopy);
  EXPECT_EQ(ends[3], there + 2 * kMemory);
}

TEST(Memory, IsUsedByPacketsForSwitches) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.limits.is_leader(call.rank)) {
      b.aggregate(b.output({0, 40}), b.input({0, 40}));
    } else {
      b.copy(b.output({0, 40}), b.input({0, 40}));
    }
  };
  sim::Job job = hand_job(4, 2, emit);
  Machine m = with_memory();
  m.memory.node_byte_fs = 1'000'000;  // 40 ns for 40 bytes; a packet's copy takes 33
  const std::int64_t alone = times(hand_job(2, 1, emit), m)[0];
  const Times ends = times(job, m);
  EXPECT_EQ(ends[1], 80 * kNs) << "beside the copy into the packet";
  EXPECT_EQ(ends[0], alone) << "it was first, and is alone later";
}

TEST(Puts, CostTheirBytesAndFragments) {
  const auto time = [](const Machine& m, std::int64_t bytes) {
    const auto emit = [bytes](const Call& call, Builder& b) {
      if (call.rank == 0) b.put(1, b.input({0, bytes}));
      if (call.rank == 1) b.wait(0);
    };
    return simulated(hand_job(2, 1, emit), m).latency_ps;
  };
  const std::int64_t rest = kPut + kLatency + kWait;
  Machine fragments = paper();
  fragments.network.fragment_bytes = 300;
  fragments.network.fragment_ps = 9 * kNs;
  EXPECT_EQ(time(fragments, 300), rest + 30 * kNs);
  EXPECT_EQ(time(fragments, 1000), rest + (100 + 3 * 9) * kNs);
  Machine socket = paper();
  socket.network.send_byte_fs = 20'000;
  EXPECT_EQ(time(socket, 1000), rest + (20 + 100) * kNs);
  Machine in_line = paper();
  in_line.one_sided.inline_bytes = 40;
  in_line.one_sided.inline_byte_fs = 500'000;
  in_line.one_sided.stage_puts = true;
  EXPECT_EQ(time(in_line, 40), rest + (20 + 4) * kNs);
  EXPECT_EQ(time(in_line, 50), rest + (31 * kNs + 2500) + 5 * kNs) << "copied, for it is longer";
}

// The NIC reads a list where it is, for a price per entry; a longer one is copied together.
TEST(Lists, AreGatheredOrPacked) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(1, {b.input({0, 40}), b.input({80, 40}), b.input({160, 40})});
    if (call.rank == 1) b.wait(0);
  };
  Machine m = paper();
  m.network.gather_ps = 9 * kNs;
  m.memory.copy_block_ps = 2 * kNs;
  m.memory.copy_run_ps = 300;
  const std::int64_t rest = kPut + 12 * kNs + kLatency + kWait;
  const sim::Job job = hand_job(2, 1, emit);
  EXPECT_EQ(simulated(job, m).latency_ps, rest + 2 * 9 * kNs);
  m.network.max_entries = 2;
  // Four entries in the two lists of the copy, three runs, 6 ns for 120 bytes.
  EXPECT_EQ(simulated(job, m).latency_ps, rest + 31 * kNs + 4 * 2 * kNs + 3 * 300 + 6 * kNs);
}

// Where lists are put as they are, one that a request does not take goes in parts: 5 runs with 4
// or 2 beside the head of the message, which the last request has.
TEST(Lists, GoInPartsWhereTheyAreTooLongForARequest) {
  const auto five_runs = [](Builder& b) {
    BufferList list;
    for (std::int64_t i = 0; i < 5; ++i) list.add(b.input({80 * i, 40}));
    return list;
  };
  const auto put = [&](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(1, five_runs(b));
    if (call.rank == 1) b.wait(0);
  };
  const auto send = [&](const Call& call, Builder& b) {
    if (call.rank == 0) b.send(1, five_runs(b));
    if (call.rank == 1) b.recv(0, {b.output({0, 200})});
  };
  Machine m = paper();
  m.network.gather_ps = 9 * kNs;
  const auto time = [&](const std::function<void(const Call&, Builder&)>& emit,
                        std::int32_t entries) {
    sim::Job job = hand_job(2, 1, emit);
    job.call.limits.gather_entries = entries;
    const sim::Report report = simulated(job, m);
    EXPECT_EQ(report.activity_ps[static_cast<std::size_t>(sim::Activity::kCopy)], 0);
    return report.latency_ps;
  };
  EXPECT_EQ(time(put, 5), kPut + 20 * kNs + 4 * 9 * kNs + kLatency + kWait);
  // A request more, and an entry less that is not the first of its request.
  const std::int64_t more = kPut + m.network.gap_ps - 9 * kNs;
  for (const std::int32_t entries : {4, 2}) {
    EXPECT_EQ(time(put, entries), time(put, 5) + more) << entries;
    EXPECT_EQ(time(send, entries), time(send, 5) + more) << entries;
  }
  m.one_sided.inline_bytes = 200;  // part of the one request, then
  EXPECT_EQ(time(put, 4), kPut + 20 * kNs + kLatency + kWait);
}

TEST(Copies, CostTheirBlocksRunsAndBytes) {
  Machine m = paper();
  m.memory.copy_block_ps = 2 * kNs;
  m.memory.copy_run_ps = 300;
  m.memory.copy_byte_fs = 70'000;
  m.memory.cache_bytes = 1000;
  const auto time = [&](std::int64_t half) {
    const auto emit = [half](const Call&, Builder& b) {
      b.copy({b.output({0, half}), b.output({700, half})}, b.input({0, 2 * half}));
    };
    return simulated(hand_job(1, 1, emit), m).latency_ps;
  };
  const std::int64_t calls = 31 * kNs + 3 * 2 * kNs + 2 * 300;
  EXPECT_EQ(time(250), calls + 25 * kNs) << "500 bytes and their copy are as much as the cache";
  EXPECT_EQ(time(300), calls + 42 * kNs) << "600 bytes are more";
}

TEST(Reductions, CostTheirBytes) {
  Machine m = paper();
  m.memory.reduce_ps = 11 * kNs;
  m.memory.reduce_cached_fs = 60'000;
  m.memory.reduce_byte_fs = 130'000;
  m.memory.cache_bytes = 1200;
  const auto time = [&](std::int64_t bytes) {
    const auto emit = [bytes](const Call&, Builder& b) {
      b.reduce(b.output({0, bytes}), b.output({0, bytes}), b.input({0, bytes}));
    };
    return simulated(hand_job(1, 1, emit), m).latency_ps;
  };
  EXPECT_EQ(time(400), (11 + 24) * kNs) << "two operands and the result are as much as the cache";
  EXPECT_EQ(time(500), (11 + 65) * kNs);
}

// Eight nodes, two at a switch, two of those at one above, and one that joins all.
Machine with_levels() {
  Machine m = paper();
  m.topology = {.hop_latency_ps = 40 * kNs,
                .levels = {{.radix = 2, .oversubscription_permille = 3000},
                           {.radix = 2, .oversubscription_permille = 1500}}};
  return m;
}

TEST(Levels, EachCostsTwoHopsAndItsShare) {
  const auto time = [&](Rank reader) {
    const auto emit = [reader](const Call& call, Builder& b) {
      if (call.rank == 0) b.put(reader, b.input({0, 1000}));
      if (call.rank == reader) b.wait(0);
    };
    return simulated(hand_job(8, 1, emit), with_levels()).latency_ps;
  };
  const std::int64_t rest = kPut + kLatency + kWait;
  EXPECT_EQ(time(1), rest + 100 * kNs);
  EXPECT_EQ(time(3), rest + 300 * kNs + 2 * 40 * kNs);
  EXPECT_EQ(time(4), rest + 450 * kNs + 4 * 40 * kNs);
}

// By the one rounding rule: to nearest, a half up, level by level.
TEST(Levels, SharesAreRoundedToNearest) {
  Machine m = paper();
  m.topology.levels = {{.radix = 2, .oversubscription_permille = 1005},
                       {.radix = 2, .oversubscription_permille = 1500}};
  const auto wire = [&](std::int64_t per_byte_fs, std::int32_t levels) {
    m.network.per_byte_fs = per_byte_fs;
    return wire_ps(m, {.bytes = 1000}, levels, false);
  };
  EXPECT_EQ(wire(100'000, 1), 100'500);
  EXPECT_EQ(wire(100'100, 1), 100'601) << "100,600.5 fs";
  EXPECT_EQ(wire(100'099, 1), 100'599) << "100,599.495 fs";
  EXPECT_EQ(wire(100'100, 2), 150'902) << "1.5 times 100,601 fs";
}

// The writer's link is as busy as its farthest reader has it; a copy is made at each level.
TEST(Levels, AMulticastIsCopiedAtEach) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.multicast(Channel::kTeam, b.input({0, 40}));
    if (call.rank != 0) b.receive(Channel::kTeam, 0, b.output({0, 40}));
  };
  Machine m = with_levels();
  m.datagram = {.mtu_bytes = 40, .fragment_ps = 37 * kNs, .deliver_ps = 41 * kNs};
  m.multicast = {.replicate_ps = 43 * kNs, .ack_ps = 2000 * kNs};
  const std::int64_t copy = (31 + 2) * kNs;
  const std::int64_t left = (3 + 37) * kNs + copy + 18 * kNs;
  const std::int64_t taken = (5 + 37) * kNs + copy;
  const Times ends = times(hand_job(8, 1, emit), m);
  EXPECT_EQ(ends[1], left + kLatency + 43 * kNs + taken);
  EXPECT_EQ(ends[2], left + kLatency + 2 * 40 * kNs + 2 * 43 * kNs + taken);
  EXPECT_EQ(ends[7], left + kLatency + 4 * 40 * kNs + 3 * 43 * kNs + taken);
}

}  // namespace
}  // namespace carillon::test
