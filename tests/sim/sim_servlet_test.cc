// SPDX-License-Identifier: Apache-2.0
//
// Programs whose nodes have a servlet: what it costs to leave a collective to it, that computation
// hides what it does, and that one core does the work of all ranks of a node.
#include <gtest/gtest.h>

#include <string>

#include "machine/costs.h"
#include "machine/sheet.h"
#include "program/text.h"
#include "select/select.h"
#include "sim/replay.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kPsPerNs = 1000;

struct Setting {
  machine::Machine machine = machine::load("edr").value();
  sim::Progress progress = sim::Progress::kServlet;
  Rank ppn = 1;
  std::string rules = "bcast=chain";
  sim::Options options = {};
};

Result<sim::ReplayReport> try_replay(const std::string& lines, const Setting& setting) {
  const Result<program::Program> program = program::parse("carillon-program 1\n" + lines, "p");
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!program.ok()) return program.status();
  const sim::Replay replay{
      .program = program.value(),
      .nodes = predict::even_nodes(program.value().ranks, setting.ppn),
      .job_of = [rules = parse_rules(setting.rules).value()](
                    const Shared& shared,
                    const std::shared_ptr<const Nodes>& nodes) -> Result<sim::Job> {
        const Limits limits{.nodes = nodes};
        const AlgorithmChoice choice = select(shared, limits, rules);
        return sim_job(*choice.algorithm, shared, limits, choice.params);
      },
      .progress = setting.progress};
  return sim::replay(replay, setting.machine, setting.options);
}

sim::ReplayReport replayed(const std::string& lines, const Setting& setting = {}) {
  Result<sim::ReplayReport> report = try_replay(lines, setting);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? report.value() : sim::ReplayReport{};
}

// A line of shared memory each way, and what it takes to look at one.
std::int64_t tell_ps(const machine::Machine& m) { return machine::local_put_ps(m, {.bytes = 0}); }
std::int64_t know_ps(const machine::Machine& m) {
  return m.shared_memory.latency_ps + machine::local_wait_ps(m);
}

std::string text(std::int64_t number) { return std::to_string(number); }

std::string exchange(std::int64_t compute_ns, const std::string& call) {
  return "ranks 2\n" + call + "\nrank all\nstart a\ncompute " + text(compute_ns) + "\nwait a\n";
}
const std::string kExchange = "call a allgather count=100000";

TEST(Servlet, AnExchangeCostsTwoLinesMoreThanTheCall) {
  for (const std::int64_t count : {1, 2, 3, 5, 7, 8, 13, 300, 70000, 1000000}) {
    const std::string call = "call a bcast count=" + text(count);
    const Setting setting;
    const std::int64_t alone_ps = replayed("ranks 2\n" + call + "\nrank all\ndo a\n").total_ps;
    EXPECT_EQ(replayed(exchange(0, call)).total_ps,
              alone_ps + 2 * (tell_ps(setting.machine) + know_ps(setting.machine)))
        << count;
  }
}

TEST(Servlet, ABlockingCallIsTheRanksOwn) {
  const std::string lines = "ranks 4\n" + kExchange + "\nrank all\ndo a\n";
  EXPECT_EQ(replayed(lines, {.ppn = 2}).total_ps,
            replayed(lines, {.progress = sim::Progress::kCaller, .ppn = 2}).total_ps);
}

// All of it is hidden behind a computation that is longer, and nothing without a servlet.
TEST(Servlet, ComputationHidesTheExchange) {
  constexpr std::int64_t kComputeNs = 1'000'000;
  const Setting with;
  // Rank 1 forwards what comes.
  const std::string chain = "ranks 3\ncall a bcast count=100000\nrank all\nstart a\ncompute " +
                            text(kComputeNs) + "\nwait a\n";
  const std::int64_t hidden_ps = replayed(chain).total_ps;
  EXPECT_EQ(hidden_ps,
            kComputeNs * kPsPerNs + tell_ps(with.machine) + machine::local_wait_ps(with.machine));
  const std::int64_t alone_ps =
      replayed("ranks 3\ncall a bcast count=100000\nrank all\ndo a\n").total_ps;
  ASSERT_LT(alone_ps, kComputeNs * kPsPerNs);
  const std::int64_t without_ps = replayed(chain, {.progress = sim::Progress::kCaller}).total_ps;
  EXPECT_GT(without_ps, hidden_ps + alone_ps / 3);
}

TEST(Servlet, WhatIsLongerThanTheComputationIsWaitedFor) {
  const std::int64_t at_once_ps = replayed(exchange(0, kExchange)).total_ps;
  EXPECT_EQ(replayed(exchange(1000, kExchange)).total_ps, at_once_ps);
}

// Ranks of two nodes in pairs: the node's servlet posts and takes up for all of them.
std::int64_t pairs_ps(Rank pairs, sim::Progress progress) {
  Setting setting{.progress = progress, .ppn = pairs, .rules = "barrier=dissemination"};
  setting.machine.network.send_overhead_ps = 300'000 * kPsPerNs;
  setting.machine.network.recv_overhead_ps = 200'000 * kPsPerNs;
  return replayed("ranks " + text(2 * pairs) + "\nteams pair stride " + text(pairs) +
                      "\ncall a barrier team=pair\nrank all\nstart a\nwait a\n",
                  setting)
      .total_ps;
}

TEST(Servlet, OneCoreDoesTheWorkOfAllRanks) {
  machine::Machine m = machine::load("edr").value();
  m.network.send_overhead_ps = 300'000 * kPsPerNs;
  m.network.recv_overhead_ps = 200'000 * kPsPerNs;
  const std::int64_t each_ps = machine::put_ps(m, {.bytes = 0, .entries = 0}) +
                               machine::wait_ps(m) + machine::local_wait_ps(m) + tell_ps(m);
  for (const Rank pairs : {5, 7, 8, 13}) {  // of fewer it is not busy all the time
    EXPECT_EQ(
        pairs_ps(pairs + 1, sim::Progress::kServlet) - pairs_ps(pairs, sim::Progress::kServlet),
        each_ps)
        << pairs;
    // Threads, and ranks that wait, have a core each.
    EXPECT_LT(pairs_ps(pairs, sim::Progress::kThread), 2 * 500'000 * kPsPerNs);
    EXPECT_LT(pairs_ps(pairs, sim::Progress::kCaller), 2 * 500'000 * kPsPerNs);
  }
}

// What the servlet copies takes its share of the memory of those that compute.
TEST(Servlet, ItsCopiesStretchComputations) {
  Setting setting{.ppn = 2, .rules = "bcast=binomial"};
  setting.machine.memory.node_byte_fs = 50'000;
  setting.machine.memory.compute_slowdown_permille = 500;
  const std::string lines =
      "ranks 2\ncall b bcast root=1 count=40000\nrank all\nstart b\ncompute 90000\nwait b\n";
  // 40,000 bytes into shared memory and out of it: 2 times 2,000 ns of the memory.
  EXPECT_EQ(replayed(lines, setting).ranks[0].compute_ps, 92'000 * kPsPerNs);
  setting.ppn = 1;
  setting.machine.one_sided.stage_puts = false;
  EXPECT_LT(replayed(lines, setting).ranks[1].compute_ps, 92'000 * kPsPerNs);
}

TEST(Servlet, SeveralInFlightOnOverlappingTeams) {
  const std::string lines =
      "ranks 6\nteams row blocks 3\nteams column stride 3\n"
      "call w allreduce count=100 element=8\ncall r allgather team=row count=800\n"
      "call c bcast team=column root=1 count=3000\n"
      "rank 0-4:2\nrepeat 3\nstart w\nstart r\nstart c\ncompute 1000\nwait c\nwait w\nwait r\nend\n"
      "rank 1-5:2\nrepeat 3\nstart c\nstart w as x\ncompute 500\ndo r\nwait c\nwait x\nend\n";
  for (const Rank ppn : {1, 2, 3, 6}) {
    const Setting setting{
        .ppn = ppn, .rules = "", .options = {.skew_ps = 2'000'000, .critical_path = true}};
    const sim::ReplayReport report = replayed(lines, setting);
    EXPECT_EQ(
        report.messages,
        replayed(lines, {.progress = sim::Progress::kCaller, .ppn = ppn, .rules = ""}).messages);
    EXPECT_EQ(report.kinds[static_cast<std::size_t>(Collective::kAllreduce)].calls, 3);
    EXPECT_EQ(report.kinds[static_cast<std::size_t>(Collective::kBcast)].calls, 9);
    EXPECT_EQ(replayed(lines, setting).total_ps, report.total_ps);
    const std::vector<sim::PathStep>& path = report.critical_path;
    ASSERT_GT(path.size(), 3U);
    for (std::size_t i = 1; i < path.size(); ++i) {
      EXPECT_EQ(path[i].begin_ps, path[i - 1].end_ps) << i;
    }
  }
}

TEST(Servlet, WhatCannotBeIsRefused) {
  Setting setting{.ppn = 2};
  setting.machine.node.cores = 2;
  const Result<sim::ReplayReport> crowded =
      try_replay("ranks 2\ncall a barrier\nrank all\ndo a\n", setting);
  EXPECT_EQ(crowded.status().code(), Code::kUnsupported);
  EXPECT_NE(crowded.status().message().find("beside 2 ranks there is none for a servlet"),
            std::string::npos);
  setting.machine.node.cores = 3;
  EXPECT_TRUE(try_replay("ranks 2\ncall a barrier\nrank all\ndo a\n", setting).ok());
  const Result<sim::ReplayReport> stuck = try_replay(
      "ranks 3\nteam t 0,1\ncall a barrier\ncall b barrier team=t\nrank 0\nstart a\nwait a\n"
      "start b\nwait b\nrank 1,2\nstart a\nwait a\n",
      {.ppn = 3});
  EXPECT_EQ(stuck.status().message(),
            "p:10: rank 0 waits for ever in barrier, call 1 on team t, which rank 1 does not "
            "start");
}

}  // namespace
}  // namespace carillon::test
