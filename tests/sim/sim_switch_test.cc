// SPDX-License-Identifier: Apache-2.0
//
// Reductions in switches, on machines and teams where the times can be added up on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sim/switches.h"
#include "support/paper_machine.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kToSwitch = (43 + 600) * kNs;

// Of 8 bytes: a copy, 28 bytes on the wire, 4 beats at a switch.
constexpr std::int64_t kCopy8 = 31'400;
constexpr std::int64_t kWire8 = 2'800;
constexpr std::int64_t kUp8 = (47 + 2 * 6 + 2 + 4) * kNs;
constexpr std::int64_t kDown8 = (53 + 4) * kNs;
constexpr std::int64_t kOneSwitch = 37 * kNs + kCopy8 + kWire8 + kToSwitch + kUp8 + kToSwitch;

constexpr std::int64_t kTake8 = 41 * kNs + kCopy8;

void reduce_in_switches(const Call& call, Builder& b) {
  if (call.limits.is_leader(call.rank)) b.aggregate(b.output({0, 8}), b.input({0, 8}));
}

TEST(InSwitch, OneSwitch) {
  for (const Rank ranks : {2, 3, 4}) {
    const sim::Report report = simulated(hand_job(ranks, 1, reduce_in_switches), paper());
    EXPECT_EQ(report.latency_ps, kOneSwitch + kTake8);
    EXPECT_EQ(report.messages, ranks);
    EXPECT_EQ(report.bytes, ranks * 8);
    EXPECT_EQ(report.activity_ps[static_cast<std::size_t>(sim::Activity::kCopy)],
              ranks * 2 * kCopy8);
  }
}

// A level more is a hop up and one down.
TEST(InSwitch, TreesOfSwitches) {
  const std::int64_t level = 2 * 600 * kNs + kUp8 + kDown8;
  for (const Rank ranks : {5, 13, 16}) {
    EXPECT_EQ(simulated(hand_job(ranks, 1, reduce_in_switches), paper()).latency_ps,
              kOneSwitch + level + kTake8);
  }
  EXPECT_EQ(simulated(hand_job(17, 1, reduce_in_switches), paper()).latency_ps,
            kOneSwitch + 2 * level + kTake8);
}

// Nobody has the result before the last one has given its operand.
TEST(InSwitch, TheLastOneDecides) {
  const sim::Options options{.starts_ps = {0, 9000 * kNs, 0, 0, 0, 0, 0}, .rank_times = true};
  const sim::Report report = simulated(hand_job(7, 1, reduce_in_switches), paper(), options);
  for (std::size_t rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(report.rank_ps[rank] + options.starts_ps[rank], 9000 * kNs + report.rank_ps[1]);
  }
  sim::Options traced = options;
  traced.critical_path = true;
  const auto path = simulated(hand_job(7, 1, reduce_in_switches), paper(), traced).critical_path;
  ASSERT_EQ(path.size(), 3U);
  EXPECT_EQ(path[0].rank, 1);
  EXPECT_EQ(path[1].from, 1);
  EXPECT_EQ(path[1].begin_ps, 9000 * kNs + 37 * kNs + kCopy8);
}

// Five packets of 40 bytes, three in flight: the result of the first is the credit for the fourth.
TEST(InSwitch, TheWindow) {
  const auto emit = [](const Call&, Builder& b) {
    b.aggregate(b.output({0, 200}), b.input({0, 200}));
  };
  Call call{.shared = {.collective = Collective::kAllreduce, .ranks = 2, .count = 200}};
  call.limits.nodes = predict::even_nodes(2, 1);
  const sim::Report report = simulated({.call = call, .locals = {}, .emit = emit}, paper());
  const std::int64_t send = (37 + 31 + 2) * kNs, take = (41 + 31 + 2) * kNs;
  const std::int64_t trip = 6 * kNs + kToSwitch + (47 + 12 + 10 + 8) * kNs + kToSwitch;
  const std::int64_t first_result = send + trip;
  const std::int64_t fifth_sent = first_result + 2 * (take + send);
  EXPECT_EQ(report.latency_ps, fifth_sent + trip + take);
  EXPECT_EQ(report.messages, 10);
  EXPECT_EQ(report.bytes, 400);
}

// After a loop, twice, and by ranks that give nothing or want nothing.
TEST(InSwitch, OneReductionAfterTheOther) {
  const auto emit = [](const Call& call, Builder& b) {
    b.segments(24, 8, [&](const Range& segment) { b.copy(b.output(segment), b.input(segment)); });
    b.aggregate(b.output({0, 8}), call.rank == 1 ? BufferList() : b.input({0, 8}));
    b.aggregate(b.output({0, 8}), b.output({0, 8}));
  };
  Call call{.shared = {.collective = Collective::kAllreduce, .ranks = 3, .count = 24}};
  call.limits.nodes = predict::even_nodes(3, 1);
  const sim::Report report = simulated({.call = call, .locals = {}, .emit = emit}, paper());
  EXPECT_EQ(report.latency_ps, 3 * kCopy8 + 2 * (kOneSwitch + kTake8));
  EXPECT_EQ(report.bytes, 5 * 8);
}

// Leaders give what the nodes have made, and the ranks of a node share its link.
TEST(InSwitch, Hierarchical) {
  const Algorithm& algorithm = *find_algorithm("allreduce.switch");
  const auto latency = [&](const std::vector<std::int32_t>& node_of, std::int64_t count) {
    const auto ranks = static_cast<Rank>(node_of.size());
    const Result<sim::Job> job = sim_job(
        algorithm,
        {.collective = Collective::kAllreduce, .ranks = ranks, .count = count, .element_bytes = 8},
        {.nodes = std::make_shared<Nodes>(node_of)});
    return simulated(job.value(), paper()).latency_ps;
  };
  const std::int64_t alone = latency({0, 1, 2}, 1);
  EXPECT_EQ(alone, kOneSwitch + kTake8);
  EXPECT_GT(latency({0, 0, 0, 1, 2, 2}, 1), alone);
  EXPECT_EQ(latency({0, 0, 0, 1, 2, 2}, 1), latency({2, 2, 1, 0, 0, 0}, 1));
  EXPECT_GT(latency({0, 0, 0, 1, 2, 2}, 100), latency({0, 0, 0, 1, 2, 2}, 10));
}

// All leaders take the result of a reduce, of which one keeps it, and of a barrier, of nothing. In
// a broadcast only the root gives something: 8 bytes are on the wire of one host on the way up.
TEST(InSwitch, ReduceBcastAndBarrier) {
  const auto of = [](const char* id, const std::vector<std::int32_t>& node_of) {
    const Algorithm& algorithm = *find_algorithm(id);
    const Result<sim::Job> job = sim_job(algorithm,
                                         {.collective = algorithm.collective,
                                          .ranks = static_cast<Rank>(node_of.size()),
                                          .count = 1,
                                          .element_bytes = 8},
                                         {.nodes = std::make_shared<Nodes>(node_of)});
    return simulated(job.value(), paper());
  };
  constexpr std::int64_t kNothing =
      37 * kNs + 2 * kNs + kToSwitch + (47 + 2 * 6 + 3) * kNs + kToSwitch + 41 * kNs;
  struct Case {
    const char* id;
    std::int64_t ps, bytes;
  };
  for (const Case& c :
       {Case{"reduce.switch", kOneSwitch + kTake8, 24},
        Case{"bcast.switch", kOneSwitch + kTake8, 8}, Case{"barrier.switch", kNothing, 0}}) {
    const sim::Report report = of(c.id, {0, 1, 2});
    EXPECT_EQ(report.latency_ps, c.ps) << c.id;
    EXPECT_EQ(report.messages, 3) << c.id;
    EXPECT_EQ(report.bytes, c.bytes) << c.id;
    EXPECT_GT(of(c.id, {0, 0, 1, 2, 2}).latency_ps, c.ps) << c.id;
  }
}

// Two hosts far apart: the switches between them have one child each.
TEST(InSwitch, GoesByPlaces) {
  const Machine m = paper();
  const std::vector<sim::Switches::Host> hosts{{.id = 5, .place = 17}, {.id = 6, .place = 0}};
  sim::Switches switches(m, hosts);
  EXPECT_FALSE(switches.contribute(0, {.time = 100 * kNs, .operand = 8, .from = 5}));
  EXPECT_FALSE(switches.contribute(0, {.time = 110 * kNs, .operand = 8, .from = 5}));
  const auto result = switches.contribute(1, {.time = 40 * kNs, .operand = 0, .from = 6});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->from, 5U);
  EXPECT_EQ(result->operand, 8);
  const std::int64_t there = 100 * kNs + 3 * kUp8 + 2 * kDown8 + 5 * 600 * kNs + 43 * kNs;
  EXPECT_EQ(switches.result_at(0), there);
  EXPECT_EQ(switches.result_at(1), there);
  EXPECT_TRUE(switches.contribute(1, {.time = 50 * kNs, .operand = 8, .from = 6}));
  EXPECT_EQ(switches.result_at(1), there + (4 + 7) * kNs) << "it waits for the first one";
}

// A port takes one packet after the other.
TEST(InSwitch, PacketsWaitForThePort) {
  Machine m = paper();
  m.in_switch.cycle_ps = 20 * kNs;
  const std::vector<sim::Switches::Host> hosts{{.id = 0, .place = 0}, {.id = 1, .place = 4}};
  sim::Switches switches(m, hosts);
  std::int64_t before = 0;
  for (std::int64_t packet = 0; packet < 4; ++packet) {
    (void)switches.contribute(0, {.time = packet * kNs, .operand = 8});
    ASSERT_TRUE(switches.contribute(1, {.time = packet * kNs, .operand = 8}));
    if (packet > 0) {
      EXPECT_EQ(switches.result_at(0), before + 4 * 20 * kNs + 7 * kNs);
    }
    before = switches.result_at(0);
  }
}

TEST(InSwitch, WhatCannotBeIsToldAndNotSimulated) {
  Machine m = paper();
  m.in_switch.ports = 0;
  const auto why = [](const sim::Job& job, const Machine& machine) {
    const Result<sim::Report> report = sim::simulate(job, machine);
    return report.ok() ? "no error" : std::string(report.status().message());
  };
  EXPECT_THAT(why(hand_job(3, 1, reduce_in_switches), m), testing::HasSubstr("has no switches"));
  m = paper();
  m.in_switch.link_ps = 0;
  EXPECT_THAT(why(hand_job(3, 1, reduce_in_switches), m), testing::HasSubstr("without delay"));
  const auto missing = [](const Call& call, Builder& b) {
    if (call.rank != 2) reduce_in_switches(call, b);
  };
  EXPECT_THAT(why(hand_job(3, 1, missing), paper()), testing::HasSubstr("for ever"));
  m = paper();
  m.in_switch.operand_bytes = 1;
  Call call{.shared = {.collective = Collective::kAllreduce, .ranks = 2, .count = 1 << 28}};
  call.limits.nodes = predict::even_nodes(2, 1);
  const auto long_one = [](const Call&, Builder& b) {
    b.aggregate(b.output({0, 1 << 28}), b.input({0, 1 << 28}));
  };
  EXPECT_THAT(why({.call = call, .locals = {}, .emit = long_one}, m),
              testing::HasSubstr("so many packets"));
}

}  // namespace
}  // namespace carillon::test
