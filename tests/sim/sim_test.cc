// SPDX-License-Identifier: Apache-2.0
//
// The simulator on small teams written by hand, where the times can be added up on paper.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "machine/costs.h"
#include "machine/sheet.h"
#include "support/paper_machine.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

using machine::Machine;

constexpr std::int64_t kPut = (3 + 11 + 13) * kNs;
constexpr std::int64_t kWait = (5 + 17) * kNs;
constexpr std::int64_t kLatency = 1000 * kNs;
constexpr std::int64_t kGap = 7 * kNs;

void put_and_wait(const Call& call, Builder& b) {
  if (call.rank == 0) b.put(1, b.input({0, 40}));
  if (call.rank == 1) b.wait(0);
}

TEST(Simulator, OneMessage) {
  const sim::Report report = simulated(hand_job(2, 1, put_and_wait), paper());
  EXPECT_EQ(report.latency_ps, kPut + 4 * kNs + kLatency + kWait);
  EXPECT_EQ(report.messages, 1);
  EXPECT_EQ(report.bytes, 40);
  EXPECT_EQ(report.activity_ps[static_cast<std::size_t>(sim::Activity::kSend)], kPut);
  EXPECT_EQ(report.activity_ps[static_cast<std::size_t>(sim::Activity::kWait)], report.latency_ps);
}

// Of several GiB, of which each byte takes a tenth of a nanosecond on the way.
TEST(Simulator, OneLongMessage) {
  constexpr std::int64_t kBytes = std::int64_t{5} << 30;
  sim::Job job = hand_job(2, 1, [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(1, b.input({0, kBytes}));
    if (call.rank == 1) b.wait(0);
  });
  job.call.limits.slot_bytes = kBytes;
  const sim::Report report = simulated(job, paper());
  EXPECT_EQ(report.latency_ps, kPut + kBytes * kNs / 10 + kLatency + kWait);
  EXPECT_EQ(report.bytes, kBytes);
}

// They are counted in 63 bits; that more are refused is no matter of time: a byte takes none here.
TEST(Simulator, MoreBytesThanCanBeCounted) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 48;
  constexpr int kMost = 1 << 15;
  Machine free = paper();
  free.network.per_byte_fs = 0;
  for (const int messages : {kMost - 1, kMost}) {
    sim::Job job = hand_job(2, 1, [messages](const Call& call, Builder& b) {
      for (int i = 0; i < messages; ++i) {
        if (call.rank == 0) b.put(1, b.input({0, kBytes}));
        if (call.rank == 1) b.wait(0);
      }
    });
    job.call.limits.slot_bytes = kBytes;
    const Result<sim::Report> report = sim::simulate(job, free, {});
    if (messages < kMost) {
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      EXPECT_EQ(report.value().bytes, kBytes * messages);
    } else {
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.status().code(), Code::kUnsupported);
      EXPECT_NE(report.status().to_string().find("more bytes than can be counted"),
                std::string::npos);
    }
  }
}

Machine with_multicast() {
  Machine m = paper();
  m.datagram = {.mtu_bytes = 30, .fragment_ps = 37 * kNs, .deliver_ps = 41 * kNs};
  m.multicast = {.replicate_ps = 43 * kNs, .ack_ps = 2000 * kNs};
  return m;
}

// 40 bytes are two datagrams; the payload is copied on either side.
constexpr std::int64_t kGroupCopy = (31 + 2) * kNs;
constexpr std::int64_t kMulticast = (3 + 2 * 37) * kNs + kGroupCopy;
constexpr std::int64_t kReceive = (5 + 2 * 37) * kNs + kGroupCopy;

void multicast_and_receive(const Call& call, Builder& b) {
  const Range all{0, 40};
  if (call.rank == 0) b.multicast(Channel::kTeam, b.input(all));
  if (call.rank != 0) b.receive(Channel::kTeam, 0, b.output(all));
}

// Seven nodes take no longer than two, and the writer sends one message.
TEST(Simulator, OneMulticast) {
  for (const Rank ranks : {2, 7}) {
    const sim::Report report =
        simulated(hand_job(ranks, 1, multicast_and_receive), with_multicast());
    EXPECT_EQ(report.latency_ps, kMulticast + 4 * kNs + kLatency + 43 * kNs + kReceive);
    EXPECT_EQ(report.messages, 1);
    EXPECT_EQ(report.bytes, 40);
  }
}

// On nodes of three, the network card makes a copy for each process after the first.
TEST(Simulator, AMulticastIsDeliveredToEachProcess) {
  const sim::Report report =
      simulated(hand_job(6, 3, multicast_and_receive), with_multicast(), {.rank_times = true});
  const std::int64_t there = kMulticast + 4 * kNs + kLatency + 43 * kNs;
  const std::int64_t deliver = 2 * 41 * kNs;
  const std::int64_t left = kMulticast + 4 * kNs;
  EXPECT_EQ(
      report.rank_ps,
      (std::vector<std::int64_t>{
          kMulticast, left + deliver + kReceive, left + 2 * deliver + kReceive, there + kReceive,
          there + kGap + deliver + kReceive, there + kGap + 2 * deliver + kReceive}));
}

// Each copy crosses the bus, one after the other, where the message itself did.
TEST(Simulator, CopiesOfAMulticastCrossTheBus) {
  Machine m = with_multicast();
  m.bus = {.per_message_ps = 50 * kNs, .per_byte_fs = 2'000'000, .half_duplex = true};
  const sim::Report report =
      simulated(hand_job(6, 3, multicast_and_receive), m, {.rank_times = true});
  const std::int64_t crossing = 50 * kNs + 80 * kNs;
  const std::int64_t there = kMulticast + 50 * kNs + 80 * kNs + kLatency + 43 * kNs;
  // The first is on the bus as it comes; what is copied meanwhile waits for it.
  const std::int64_t first = there + 50 * kNs;
  EXPECT_EQ(report.rank_ps[3], first + kReceive);
  EXPECT_EQ(report.rank_ps[4], first + crossing + kReceive);
  EXPECT_EQ(report.rank_ps[5], first + 2 * crossing + kReceive);
}

// The fifth of a window of four leaves when all have acknowledged the first.
TEST(Simulator, AMulticastWaitsForTheWindow) {
  const auto five = [](const Call& call, Builder& b) {
    for (int i = 0; i < 5; ++i) multicast_and_receive(call, b);
  };
  const sim::Report report =
      simulated(hand_job(3, 1, five), with_multicast(), {.rank_times = true});
  const std::int64_t first = kMulticast + 4 * kNs + kLatency + 43 * kNs + kReceive;
  EXPECT_EQ(report.rank_ps[0], first + 2000 * kNs + kMulticast);
}

TEST(Simulator, ALateReaderDoesNotWait) {
  sim::Options options{.starts_ps = {0, 5000 * kNs}, .rank_times = true};
  const sim::Report report = simulated(hand_job(2, 1, put_and_wait), paper(), options);
  EXPECT_EQ(report.latency_ps, 5000 * kNs + kWait);
  EXPECT_EQ(report.rank_ps, (std::vector<std::int64_t>{kPut, kWait}));
}

TEST(Simulator, WithinANode) {
  const sim::Report report = simulated(hand_job(2, 2, put_and_wait), paper());
  EXPECT_EQ(report.latency_ps, (10 + 2 + 80 + 10) * kNs);
}

TEST(Simulator, TheNicTakesOneMessageAtATime) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) {
      for (const Rank peer : {1, 2, 3}) b.put(peer, b.input({0, 1000}));
    } else {
      b.wait(0);
    }
  };
  // Posts are quicker than the NIC: it sends 100 ns each, with gaps.
  EXPECT_EQ(simulated(hand_job(4, 1, emit), paper()).latency_ps,
            kPut + 3 * 100 * kNs + 2 * kGap + kLatency + kWait);
}

TEST(Simulator, AFullQueueMakesThePostWait) {
  const auto emit = [](const Call& call, Builder& b) {
    for (const Rank peer : {1, 2, 3, 4}) {
      if (call.rank == 0) b.put(peer, b.input({0, 1000}));
      if (call.rank == peer) b.wait(0);
    }
  };
  Machine m = paper();
  m.network.send_queue = 1;
  sim::Options options{.rank_times = true};
  // The third post waits until the second message is no longer waiting: 107 ns after the first.
  const sim::Report report = simulated(hand_job(5, 1, emit), m, options);
  EXPECT_EQ(report.rank_ps[0], kPut + 2 * (100 * kNs + kGap) + kPut);
}

TEST(Simulator, ReadersTakeOneMessageAtATime) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank > 0) {
      b.put(0, b.input({0, 1000}));
    } else {
      for (const Rank peer : {1, 2, 3}) b.wait(peer);
    }
  };
  const std::int64_t first = kPut + 100 * kNs + kLatency;
  EXPECT_EQ(simulated(hand_job(4, 1, emit), paper()).latency_ps,
            first + 2 * (kGap + 100 * kNs) + kWait);
}

TEST(Simulator, RanksShareTheNicOfTheirNode) {
  const auto emit = [](const Call& call, Builder& b) {  // 0, 1 -> 2, 3
    if (call.rank < 2) b.put(call.rank + 2, b.input({0, 1000}));
    if (call.rank >= 2) b.wait(call.rank - 2);
  };
  EXPECT_EQ(simulated(hand_job(4, 2, emit), paper()).latency_ps,
            kPut + 2 * 100 * kNs + kGap + kLatency + kWait);
}

TEST(Simulator, ARankThatPostsLateIsNotServedFirst) {
  // Rank 0 packs for long before it posts; rank 1, which begins later, is at the NIC before it.
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(2, b.input({0, 10'000}));
    if (call.rank == 1) b.put(3, b.input({0, 10'000}));
    if (call.rank >= 2) b.wait(call.rank - 2);
  };
  Machine m = paper();
  m.one_sided.stage_puts = true;
  const std::int64_t pack = (31 + 500) * kNs;
  sim::Options options{.starts_ps = {0, 100 * kNs, 0, 0}, .rank_times = true};
  const sim::Report report = simulated(hand_job(4, 2, emit), m, options);
  EXPECT_EQ(report.rank_ps[2], kPut + pack + 1000 * kNs + kLatency + kWait);
  EXPECT_EQ(report.rank_ps[3], kPut + pack + 2 * 1000 * kNs + kGap + kLatency + kWait);
}

TEST(Simulator, AWindowThatIsFullMakesThePutWait) {
  // Rank 1 takes nothing before 50 us; the fifth put waits for the first release.
  const auto emit = [](const Call& call, Builder& b) {
    for (int i = 0; i < 5; ++i) {
      if (call.rank == 0) b.put(1, b.input({0, 8}));
      if (call.rank == 1) b.wait(0);
    }
  };
  sim::Options options{.starts_ps = {0, 50'000 * kNs}, .rank_times = true};
  const sim::Report report = simulated(hand_job(2, 1, emit), paper(), options);
  EXPECT_EQ(report.rank_ps[0], 50'000 * kNs + kWait + kLatency + kPut);
}

TEST(Simulator, MessagesAreHeldUntilTheirLastUse) {
  const auto emit = [](const Call& call, Builder& b) {
    for (int i = 0; i < 5; ++i) {
      if (call.rank == 0) b.put(1, b.input({0, 8}));
      if (call.rank == 1) b.copy(b.output({8 * i, 8}), b.slot(b.wait(0), {0, 8}));
    }
  };
  sim::Options options{.starts_ps = {0, 50'000 * kNs}, .rank_times = true};
  const sim::Report report = simulated(hand_job(2, 1, emit), paper(), options);
  const std::int64_t copy = 31 * kNs + 400;
  EXPECT_EQ(report.rank_ps[0], 50'000 * kNs + kWait + copy + kLatency + kPut);
}

TEST(Simulator, LoopsAreWhatTheyRepeat) {
  const auto loop = [](const Call& call, Builder& b) {
    b.segments(600, 100, [&](Range s) {
      if (call.rank == 0) b.put(1, b.input(s));
      if (call.rank == 1) b.copy(b.output(s), b.slot(b.wait(0), {0, s.length}));
    });
  };
  const auto plain = [](const Call& call, Builder& b) {
    for (std::int64_t at = 0; at < 600; at += 100) {
      if (call.rank == 0) b.put(1, b.input({at, 100}));
      if (call.rank == 1) b.copy(b.output({at, 100}), b.slot(b.wait(0), {0, 100}));
    }
  };
  const sim::Report a = simulated(hand_job(2, 1, loop), paper());
  const sim::Report b = simulated(hand_job(2, 1, plain), paper());
  EXPECT_EQ(a.messages, 6);
  EXPECT_EQ(a.latency_ps, b.latency_ps);
}

TEST(Simulator, StrandsShareTheCpu) {
  // The second strand copies while the first waits; the message is read when the copy is done.
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) {
      b.put(1, b.input({0, 8}));
      return;
    }
    b.wait(0);
    b.strand();
    b.copy(b.output({0, 40'000}), b.input({0, 40'000}));
  };
  const std::int64_t copy = (31 + 2000) * kNs;
  const std::int64_t arrival = kPut + 800 + kLatency;
  ASSERT_GT(copy, arrival);
  EXPECT_EQ(simulated(hand_job(2, 1, emit), paper()).latency_ps, copy + kWait);
}

TEST(Simulator, AWaitingStrandLeavesTheCpuToOthers) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) {
      b.put(1, b.input({0, 8}));
      return;
    }
    b.wait(0);
    b.strand();
    b.copy(b.output({0, 40}), b.input({0, 40}));
    b.signal(0);
  };
  sim::Options options{.rank_times = true};
  // The copy and the signal are done before the message comes.
  const sim::Report report = simulated(hand_job(2, 1, emit), paper(), options);
  EXPECT_EQ(report.rank_ps[1], kPut + 800 + kLatency + kWait);
}

TEST(Simulator, EagerSend) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.send(1, b.input({0, 100}));
    if (call.rank == 1) b.recv(0, b.output({0, 100}));
  };
  const std::int64_t copy = (31 + 5) * kNs;
  EXPECT_EQ(simulated(hand_job(2, 1, emit), paper()).latency_ps,
            (3 + 19) * kNs + copy + 10 * kNs + kLatency + (5 + 23) * kNs + copy);
}

TEST(Simulator, LongSendAsksFirst) {
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.send(1, b.input({0, 1000}));
    if (call.rank == 1) b.recv(0, b.output({0, 1000}));
  };
  EXPECT_EQ(simulated(hand_job(2, 1, emit), paper()).latency_ps,
            (3 + 19) * kNs + 3 * kLatency + 2 * 29 * kNs + 100 * kNs + (5 + 23) * kNs);
}

TEST(Simulator, TheBusIsInSeries) {
  Machine m = paper();
  m.bus = {.per_message_ps = 50 * kNs, .per_byte_fs = 300'000, .cut_through = true};
  const auto emit = [](const Call& call, Builder& b) {
    if (call.rank == 0) b.put(1, b.input({0, 1000}));
    if (call.rank == 1) b.wait(0);
  };
  const sim::Job job = hand_job(2, 1, emit);
  EXPECT_EQ(simulated(job, m).latency_ps,
            kPut + 2 * 50 * kNs + 300 * kNs + kLatency + kWait);  // the bus is the slower one
  m.bus.cut_through = false;
  EXPECT_EQ(simulated(job, m).latency_ps,
            kPut + 2 * (50 + 300) * kNs + 100 * kNs + kLatency + kWait);
}

TEST(Simulator, HopsAndOversubscription) {
  Machine m = paper();
  m.topology = {.hop_latency_ps = 40 * kNs,
                .levels = {{.radix = 2, .oversubscription_permille = 3000}, {.radix = 2}}};
  const auto put_to = [](Rank reader) {
    return [reader](const Call& call, Builder& b) {
      if (call.rank == 0) b.put(reader, b.input({0, 1000}));
      if (call.rank == reader) b.wait(0);
    };
  };
  const auto time = [&](Rank reader) {
    return simulated(hand_job(4, 1, put_to(reader)), m).latency_ps;
  };
  EXPECT_EQ(time(1), kPut + 100 * kNs + kLatency + kWait);
  EXPECT_EQ(time(2), kPut + 300 * kNs + kLatency + 2 * 40 * kNs + kWait);
}

TEST(Simulator, Deadlock) {
  const auto emit = [](const Call& call, Builder& b) { b.wait(1 - call.rank); };
  const Result<sim::Report> report = sim::simulate(hand_job(2, 1, emit), paper());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("rank 0 waits for rank 1"), std::string::npos)
      << report.status().message();
}

TEST(Simulator, ErrorsOfTheBuilderAreTold) {
  const auto emit = [](const Call&, Builder& b) { b.wait(7); };
  const Result<sim::Report> report = sim::simulate(hand_job(2, 1, emit), paper());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("peer 7"), std::string::npos);
}

TEST(Simulator, CanBeInterrupted) {
  const Algorithm& algorithm = *find_algorithm("allreduce.recursive_doubling");
  const Result<sim::Job> job =
      sim_job(algorithm, {.collective = Collective::kAllreduce, .ranks = 4096, .count = 1},
              {.nodes = predict::even_nodes(4096, 1)});
  ASSERT_TRUE(job.ok());
  sim::Options options;
  options.on_progress = [](std::int64_t) { return false; };
  EXPECT_EQ(sim::simulate(job.value(), paper(), options).status().code(), Code::kTimeout);
}

TEST(Simulator, TheCriticalPathIsWithoutGaps) {
  const Algorithm& algorithm = *find_algorithm("allreduce.recursive_doubling");
  const Result<sim::Job> job =
      sim_job(algorithm,
              {.collective = Collective::kAllreduce, .ranks = 13, .count = 4, .element_bytes = 8},
              {.nodes = predict::even_nodes(13, 1)});
  ASSERT_TRUE(job.ok());
  sim::Options options{.skew_ps = 2000 * kNs, .critical_path = true};
  const sim::Report report = simulated(job.value(), paper(), options);
  const std::vector<sim::PathStep>& path = report.critical_path;
  ASSERT_GT(path.size(), 3U);
  for (std::size_t i = 1; i < path.size(); ++i) {
    EXPECT_EQ(path[i].begin_ps, path[i - 1].end_ps);
    EXPECT_EQ(path[i].from, path[i - 1].rank);
  }
  EXPECT_LE(path.back().end_ps - path.front().begin_ps, report.latency_ps);
  EXPECT_GT(path.back().end_ps - path.front().begin_ps, report.latency_ps - 2000 * kNs);
}

// Of ranks with several strands, too: what a strand waits for comes to the rank.
TEST(Simulator, TheCriticalPathOfSeveralStrands) {
  const auto two_strands = [](const Call& call, Builder& b) {
    if (call.rank == 0) {
      b.wait(1);
      b.signal(2);
    }
    if (call.rank == 1) b.signal(0);
    b.strand();
    if (call.rank == 0) b.signal(3);
    if (call.rank == 2) b.wait(0);
    if (call.rank == 3) b.wait(0);
  };
  const sim::Options options{.starts_ps = {0, 9000 * kNs, 0, 0}, .critical_path = true};
  const sim::Report report = simulated(hand_job(4, 1, two_strands), paper(), options);
  const std::vector<sim::PathStep>& path = report.critical_path;
  ASSERT_EQ(path.size(), 5U);  // 1, to 0, 0, to 2, 2
  EXPECT_EQ(path[0].rank, 1);
  EXPECT_EQ(path[0].begin_ps, 9000 * kNs);
  EXPECT_EQ(path[2].rank, 0);
  EXPECT_EQ(path[4].rank, 2);
}

// What the documented benchmarks do, with fewer ranks.
TEST(Simulator, ManyRanks) {
  constexpr Rank kRanks = 1 << 15;
  const Result<sim::Job> job = sim_job(
      *find_algorithm("allreduce.recursive_doubling"),
      {.collective = Collective::kAllreduce, .ranks = kRanks, .count = 1, .element_bytes = 8},
      {.nodes = predict::even_nodes(kRanks, 1)});
  ASSERT_TRUE(job.ok());
  const sim::Report together = simulated(job.value(), paper());
  EXPECT_EQ(together.messages, kRanks * 15);
  // All steps are alike: nobody waits for anything but a message on its way.
  const std::int64_t step = kPut + 800 + kLatency + kWait;
  EXPECT_EQ(together.latency_ps, 15 * (step + machine::reduce_ps(paper().memory, 8)));
  const sim::Report apart = simulated(job.value(), paper(), {.skew_ps = 5000 * kNs});
  EXPECT_EQ(apart.messages, together.messages);
  EXPECT_GT(apart.latency_ps, together.latency_ps);
  // As much later as the last one begins; and messages may now be in one another's way.
  EXPECT_LE(apart.latency_ps, together.latency_ps + 5000 * kNs + 15 * kGap);
}

TEST(Simulator, ManyMessagesToEachRank) {
  constexpr Rank kRanks = 600;  // more positions than are emitted whole
  const Result<sim::Job> job =
      sim_job(*find_algorithm("alltoall.pairwise"),
              {.collective = Collective::kAlltoall, .ranks = kRanks, .count = 8},
              {.nodes = predict::even_nodes(kRanks, 1)});
  ASSERT_TRUE(job.ok());
  sim::Options options{.skew_ps = 5000 * kNs, .rank_times = true};
  const sim::Report windows = simulated(job.value(), paper(), options);
  options.whole_positions = INT64_MAX;
  const sim::Report whole = simulated(job.value(), paper(), options);
  EXPECT_EQ(windows.messages, std::int64_t{kRanks} * (kRanks - 1));
  EXPECT_EQ(windows.rank_ps, whole.rank_ps);
}

// Messages that wait for one strand while another, which has been ready for longer, looks.
TEST(Simulator, ManyMessagesToSeveralStrands) {
  constexpr Rank kRanks = 256;
  const std::vector<std::int64_t> bytes(kRanks, 8);
  const Result<sim::Job> job =
      sim_job(*find_algorithm("alltoallv.pairwise"),
              {.collective = Collective::kAlltoallv, .ranks = kRanks},
              {.nodes = predict::even_nodes(kRanks, 4)}, {}, {bytes, bytes, bytes, bytes});
  ASSERT_TRUE(job.ok());
  const machine::Machine machine = machine::load("edr").value();
  for (const std::int64_t skew_us : {0, 1, 5, 20}) {
    EXPECT_EQ(simulated(job.value(), machine, {.skew_ps = skew_us * 1000 * kNs}).messages,
              std::int64_t{kRanks} * (kRanks - 1));
  }
}

// The strands of a group's part end in an order of their own.
TEST(Simulator, StrandsThatJoinNeedNoRoom) {
  constexpr Rank kRanks = 32;
  const std::vector<std::int64_t> bytes(kRanks, 8);
  const Result<sim::Job> job = sim_job(
      *find_algorithm("alltoallv.merged"), {.collective = Collective::kAlltoallv, .ranks = kRanks},
      {.nodes = predict::even_nodes(kRanks, 16)}, {}, {bytes, bytes, bytes, bytes});
  ASSERT_TRUE(job.ok());
  EXPECT_GT(simulated(job.value(), machine::load("edr").value()).latency_ps, 0);
}

}  // namespace
}  // namespace carillon::test
