// SPDX-License-Identifier: Apache-2.0
//
// Schedules of several stages in the simulator: a stage begins on each rank when the one before it
// has ended there, with the numbers that the rank has learned, and nobody waits for others in
// between.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "machine/sheet.h"
#include "program/text.h"
#include "schedule/verify.h"
#include "sim/replay.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kPsPerUs = 1'000'000;

machine::Machine edr() { return machine::load("edr").value(); }

// From rank i to rank j: different for all, some of them nothing.
std::int64_t length(Rank i, Rank j) { return (i * 7 + j * 3) % 5 * 8; }

// An alltoallv whose blocks have lengths of their own.
struct Exchange {
  explicit Exchange(Rank ranks, Rank ppn, std::int64_t times = 1) {
    const auto size = static_cast<std::size_t>(ranks);
    call.shared = {.collective = Collective::kAlltoallv, .ranks = ranks};
    call.limits.nodes = predict::even_nodes(ranks, ppn);
    tables.resize(4 * size, std::vector<std::int64_t>(size));
    for (Rank rank = 0; rank < ranks; ++rank) {
      auto* const own = &tables[4 * static_cast<std::size_t>(rank)];
      for (Rank peer = 0; peer < ranks; ++peer) {
        const auto at = static_cast<std::size_t>(peer);
        own[0][at] = times * length(rank, peer);
        own[2][at] = times * length(peer, rank);
        for (const std::size_t side : {0U, 2U}) {
          own[side + 1][at] = at == 0 ? 0 : own[side + 1][at - 1] + own[side][at - 1];
        }
      }
    }
    for (std::size_t at = 0; at < 4 * size; at += 4) {
      locals.push_back({false, {tables[at], tables[at + 1], tables[at + 2], tables[at + 3]}});
    }
  }
  [[nodiscard]] sim::Job job(const std::function<void(const Call&, Builder&)>& emit) const {
    return {.call = call, .locals = locals, .emit = emit};
  }
  [[nodiscard]] sim::Job by(const std::string& id) const {
    const Algorithm& algorithm = *find_algorithm(id);
    sim::Job job{.call = prepare(algorithm, call).value(),
                 .locals = locals,
                 .emit = [&](const Call& c, Builder& b) { emit_prepared(algorithm, c, b); }};
    return job;
  }
  // What the abstract machine says that is sent.
  [[nodiscard]] RunStats stats(const std::string& id) const {
    const Emit emitter = [&](Rank rank, std::int32_t stage, std::span<const std::int64_t> learned) {
      Call part = call;
      part.rank = rank;
      part.local = locals[static_cast<std::size_t>(rank)];
      part.stage = stage;
      part.learned = learned;
      return emit(*find_algorithm(id), part);
    };
    const carillon::Report report =
        verify({.shared = call.shared, .limits = call.limits, .locals = locals}, emitter);
    EXPECT_TRUE(report.ok()) << report.status.to_string();
    return report.stats;
  }

  Call call;
  std::vector<std::vector<std::int64_t>> tables;  // four of each rank
  std::vector<Local> locals;
};

// Messages of all lengths to all others, one after another, of what the ranks' counts are.
void emit_round(const Call& call, Builder& b) {
  const Rank ranks = call.shared.ranks;
  const std::int64_t row_bytes = (std::int64_t{ranks} + 1) * 8;
  const Range row = b.allocate_scratch(row_bytes), in = b.allocate_scratch(row_bytes);
  b.copy(b.scratch(row), b.counts({0, row_bytes}));
  for (Rank step = 1; step < ranks; ++step) {
    b.send((call.rank + step) % ranks, b.scratch(row.sub({0, 8 * std::int64_t{step}})));
    b.recv((call.rank + ranks - step) % ranks, b.scratch(in.sub({0, 8 * std::int64_t{step}})));
  }
}

// Stages one after another take as long as their steps in one schedule, rank by rank, however late
// ranks begin.
TEST(Stages, TakeAsLongAsOneSchedule) {
  for (const Rank ranks : {1, 2, 3, 8, 13}) {
    for (const Rank ppn : {1, 3}) {
      for (const double skew : {0.0, 3.0, 300.0}) {
        const Exchange exchange(ranks, ppn);
        const sim::Job whole = exchange.job([](const Call& call, Builder& b) {
          emit_round(call, b);
          emit_round(call, b);
        });
        const sim::Job staged = exchange.job([](const Call& call, Builder& b) {
          emit_round(call, b);
          if (call.stage == 0) b.next_stage({0, (std::int64_t{call.shared.ranks} + 1) * 8});
        });
        const sim::Options options{.skew_ps = static_cast<std::int64_t>(skew * kPsPerUs),
                                   .rank_times = true};
        const sim::Report expected = simulated(whole, edr(), options);
        const sim::Report report = simulated(staged, edr(), options);
        EXPECT_EQ(report.rank_ps, expected.rank_ps) << ranks << " ranks, " << ppn << ", " << skew;
        EXPECT_EQ(report.messages, expected.messages);
        EXPECT_EQ(report.bytes, expected.bytes);
        EXPECT_EQ(report.activity_ps, expected.activity_ps);
      }
    }
  }
}

// A rank that has what it needs goes on, however late others are.
TEST(Stages, NobodyWaitsBetweenThem) {
  const Exchange exchange(3, 1);
  const sim::Job job = exchange.job([](const Call& call, Builder& b) {
    const Range row = b.allocate_scratch(8);
    if (call.stage == 0) b.copy(b.scratch(row), b.counts({0, 8}));
    if (call.rank == 0) b.signal(1);
    if (call.rank == 1) b.wait(0);
    if (call.stage == 0) b.next_stage(row);
  });
  sim::Options options{.starts_ps = {0, 0, 1000 * kPsPerUs}, .rank_times = true};
  const sim::Report report = simulated(job, edr(), options);
  EXPECT_LT(report.rank_ps[0], 10 * kPsPerUs);
  EXPECT_LT(report.rank_ps[1], 10 * kPsPerUs);
  EXPECT_GT(report.latency_ps, 999 * kPsPerUs);
}

// The numbers are those that each rank has learned itself.
TEST(Stages, LearnRealNumbers) {
  constexpr Rank kRanks = 4;
  const Exchange exchange(kRanks, 1);
  std::vector<std::int64_t> learned(kRanks, -1);
  const sim::Job job = exchange.job([&](const Call& call, Builder& b) {
    const Range own = b.allocate_scratch(8), other = b.allocate_scratch(8);
    const Rank next = (call.rank + 1) % kRanks, before = (call.rank + kRanks - 1) % kRanks;
    if (call.stage == 0) {
      b.copy(b.scratch(own), b.counts({8 * std::int64_t{next}, 8}));
      b.send(next, b.scratch(own));
      b.recv(before, b.scratch(other));
      return b.next_stage(other);
    }
    learned[static_cast<std::size_t>(call.rank)] = call.learned.front();
  });
  simulated(job, edr());
  for (Rank rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(learned[static_cast<std::size_t>(rank)], length((rank + kRanks - 1) % kRanks, rank));
  }
}

TEST(Stages, TwoPhaseBruckSendsWhatItIsProvedToSend) {
  for (const Rank ranks : {1, 2, 5, 16, 33}) {
    for (const std::int64_t times : {1, 100}) {  // short blocks, and such that go pairwise
      const Exchange exchange(ranks, 3, times);
      const RunStats stats = exchange.stats("alltoallv.bruck_two_phase");
      const sim::Report report =
          simulated(exchange.by("alltoallv.bruck_two_phase"), edr(), {.skew_ps = 2 * kPsPerUs});
      EXPECT_EQ(report.messages, stats.messages) << ranks << ", times " << times;
      EXPECT_EQ(report.bytes, stats.message_bytes) << ranks << ", times " << times;
    }
  }
}

TEST(Stages, InAProgramAsAlone) {
  const auto replayed = [](const std::string& rounds) {
    const std::string tables =
        "call a0 alltoallv send=0,8,16 recv=0,100,0\n"
        "call a1 alltoallv send=100,0,9 recv=8,0,5\ncall a2 alltoallv send=0,5,7 recv=16,9,7\n";
    std::string lines = "carillon-program 1\nranks 3\n" + tables;
    for (const std::string rank : {"0", "1", "2"}) {
      lines += "rank " + rank + "\nrepeat " + rounds + "\ndo a" + rank + "\nend\n";
    }
    const program::Program program = program::parse(lines, "p").value();
    const sim::Replay replay{
        .program = program,
        .nodes = predict::even_nodes(3, 1),
        .job_of = [&](const Shared& shared, const std::shared_ptr<const Nodes>& nodes) {
          return sim_job(*find_algorithm("alltoallv.bruck_two_phase"), shared, {.nodes = nodes});
        }};
    const Result<sim::ReplayReport> report = sim::replay(replay, edr());
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report.value() : sim::ReplayReport{};
  };
  Exchange exchange(3, 1);
  const std::vector<std::vector<std::int64_t>> sends = {{0, 8, 16}, {100, 0, 9}, {0, 5, 7}};
  const std::vector<std::vector<std::int64_t>> recvs = {{0, 100, 0}, {8, 0, 5}, {16, 9, 7}};
  for (std::size_t rank = 0; rank < 3; ++rank) {
    exchange.tables[4 * rank] = sends[rank];
    exchange.tables[4 * rank + 2] = recvs[rank];
    exchange.locals[rank].tables.send_bytes = exchange.tables[4 * rank];
    exchange.locals[rank].tables.recv_bytes = exchange.tables[4 * rank + 2];
  }
  const sim::Report alone = simulated(exchange.by("alltoallv.bruck_two_phase"), edr());
  EXPECT_EQ(replayed("1").total_ps, alone.latency_ps);
  EXPECT_EQ(replayed("1").messages, alone.messages);
  EXPECT_EQ(replayed("5").messages, 5 * alone.messages);
  EXPECT_EQ(replayed("5").bytes, 5 * alone.bytes);
}

TEST(Stages, WhatIsInTheBuffersIsNotKnown) {
  const Exchange exchange(2, 1);
  const sim::Job job = exchange.job([](const Call& call, Builder& b) {
    const Range row = b.allocate_scratch(8);
    if (call.stage > 0) return;
    b.copy(b.scratch(row), b.input({0, 8}));
    b.next_stage(row);
  });
  const Result<sim::Report> report = sim::simulate(job, edr());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kUnsupported);
  EXPECT_NE(report.status().message().find("what is in the buffers"), std::string::npos);
}

}  // namespace
}  // namespace carillon::test
