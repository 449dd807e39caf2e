// SPDX-License-Identifier: Apache-2.0
//
// Programs in the simulator: one call costs what it costs alone, what is in flight together shares
// what it should and nothing else, computation holds progress up, and programs that cannot end are
// refused.
#include <gtest/gtest.h>

#include <string>

#include "machine/sheet.h"
#include "program/text.h"
#include "select/select.h"
#include "sim/replay.h"
#include "support/registry.h"
#include "support/sim_job.h"

namespace carillon::test {
namespace {

constexpr std::int64_t kPsPerNs = 1000;

machine::Machine edr() {
  machine::Machine machine = machine::load("edr").value();
  machine.in_switch = {.ports = 3, .send_ps = 100'000, .receive_ps = 50'000};
  return machine;
}

sim::Replay replay_of(const program::Program& program, Rank ppn,
                      const std::string& overrides = "") {
  return {.program = program,
          .nodes = predict::even_nodes(program.ranks, ppn),
          .job_of = [rules = parse_rules(overrides).value()](
                        const Shared& shared,
                        const std::shared_ptr<const Nodes>& nodes) -> Result<sim::Job> {
            const Limits limits{.nodes = nodes};
            const AlgorithmChoice choice = select(shared, limits, rules);
            return sim_job(*choice.algorithm, shared, limits, choice.params);
          }};
}

program::Program parsed(const std::string& lines) {
  Result<program::Program> program = program::parse("carillon-program 1\n" + lines, "p");
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? program.value() : program::Program{};
}

sim::ReplayReport replayed(const std::string& lines, Rank ppn = 1,
                           const std::string& overrides = "",
                           sim::Progress progress = sim::Progress::kCaller,
                           const sim::Options& options = {}) {
  const program::Program program = parsed(lines);
  sim::Replay replay = replay_of(program, ppn, overrides);
  replay.progress = progress;
  Result<sim::ReplayReport> report = sim::replay(replay, edr(), options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? report.value() : sim::ReplayReport{};
}

std::string refusal(const std::string& lines) {
  const program::Program program = parsed(lines);
  const Result<sim::ReplayReport> report = sim::replay(replay_of(program, 1), edr());
  EXPECT_FALSE(report.ok());
  return std::string(report.status().message());
}

// Those who send are ahead by calls: their root has many messages that it has not looked at, of
// calls whose members have numbers of their own.
TEST(Replay, ManyMessagesOfLaterCallsWait) {
  const auto gathers = [](int times) {
    return replayed("ranks 64\ncall a gather count=8\nrank all\nrepeat " + std::to_string(times) +
                        "\ndo a\nend\n",
                    1, "gather=flat");
  };
  const sim::ReplayReport some = gathers(100), more = gathers(200), most = gathers(300);
  EXPECT_EQ(most.messages, 63 * 300);
  EXPECT_EQ(most.total_ps - more.total_ps, more.total_ps - some.total_ps);
}

std::string text(std::int64_t number) { return std::to_string(number); }

// Every algorithm, alone and as a program of one call: the same to the picosecond.
TEST(Replay, OneBlockingCallIsTheCallAlone) {
  int compared = 0;
  for (const Algorithm& algorithm : algorithms()) {
    if (has_tables(algorithm.collective)) continue;  // below
    for (const Rank ranks : {1, 2, 3, 5, 7, 8, 13}) {
      for (const Rank ppn : {1, 3}) {
        for (const std::int64_t count : {1, 5000}) {
          const Shared shared{.collective = algorithm.collective,
                              .ranks = ranks,
                              .root = has_root(algorithm.collective) ? ranks - 1 : 0,
                              .count = count,
                              .element_bytes = 8};
          const Limits limits{.nodes = predict::even_nodes(ranks, ppn)};
          if (!check(algorithm, shared, {}, limits).ok()) continue;
          const Result<sim::Job> job = sim_job(algorithm, shared, limits);
          ASSERT_TRUE(job.ok());
          const sim::Options options{.skew_ps = 3000 * kPsPerNs, .seed = 5, .rank_times = true};
          const Result<sim::Report> alone = sim::simulate(job.value(), edr(), options);
          ASSERT_TRUE(alone.ok());
          const program::Program program = parsed(
              "ranks " + text(ranks) + "\ncall a " +
              std::string(collective_name(algorithm.collective)) + " root=" + text(shared.root) +
              " count=" + text(count) + " element=8\nrank all\ndo a\n");
          sim::Replay replay = replay_of(program, ppn);
          replay.job_of = [&](const Shared& asked, const std::shared_ptr<const Nodes>& nodes) {
            EXPECT_EQ(asked, shared);
            return sim_job(algorithm, asked, {.nodes = nodes});
          };
          const Result<sim::ReplayReport> together = sim::replay(replay, edr(), options);
          ASSERT_TRUE(together.ok()) << together.status().message();
          EXPECT_EQ(together.value().total_ps, alone.value().latency_ps)
              << algorithm.id << " " << ranks << " ranks, " << ppn << " per node, " << count;
          EXPECT_EQ(together.value().messages, alone.value().messages);
          for (std::size_t rank = 0; rank < alone.value().rank_ps.size(); ++rank) {
            EXPECT_EQ(together.value().ranks[rank].call_ps, alone.value().rank_ps[rank])
                << algorithm.id << " " << ranks << " ranks, " << ppn << " per node, rank " << rank;
          }
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 300);
}

// Lists that go as they are, without being copied together first: as the call alone has them.
TEST(Replay, ListsAreGatheredAsInTheCallAlone) {
  const Shared shared{.collective = Collective::kAlltoall, .ranks = 8, .count = 100};
  const program::Program program = parsed("ranks 8\ncall a alltoall count=100\nrank all\ndo a\n");
  const Algorithm& algorithm = *find_algorithm("alltoall.bruck_inplace");
  std::int64_t copied_ps = 0;
  for (const std::int32_t entries : {1, 2, 30}) {
    const auto job_of = [&](const std::shared_ptr<const Nodes>& nodes) {
      return sim_job(algorithm, shared, {.gather_entries = entries, .nodes = nodes},
                     {.memory = entries > 1 ? "gather" : "pack"});
    };
    sim::Replay replay = replay_of(program, 1);
    replay.gather_entries = entries;
    replay.job_of = [&](const Shared&, const std::shared_ptr<const Nodes>& nodes) {
      return job_of(nodes);
    };
    const std::int64_t total_ps = sim::replay(replay, edr()).value().total_ps;
    EXPECT_EQ(total_ps, simulated(job_of(predict::even_nodes(8, 1)).value(), edr()).latency_ps);
    if (entries == 1) copied_ps = total_ps;
    EXPECT_EQ(entries > 1, total_ps < copied_ps) << entries;
  }
}

// Where ranks share cores, who computes keeps the others from theirs.
TEST(Replay, RanksShareCores) {
  machine::Machine m = edr();
  m.node.cores = 2;
  m.node.switch_ps = 900 * kPsPerNs;
  const auto of = [&](const std::string& lines, sim::Progress progress = sim::Progress::kCaller) {
    const program::Program program = parsed(lines);
    sim::Replay replay = replay_of(program, 5);
    replay.progress = progress;
    return sim::replay(replay, m);
  };
  const std::string call = "ranks 5\ncall a allreduce count=3 element=8\nrank all\n";
  const Shared shared{
      .collective = Collective::kAllreduce, .ranks = 5, .count = 3, .element_bytes = 8};
  const Limits limits{.nodes = predict::even_nodes(5, 5)};
  const AlgorithmChoice choice = select(shared, limits, default_rules());
  const sim::Job job = sim_job(*choice.algorithm, shared, limits, choice.params).value();
  EXPECT_EQ(of(call + "do a\n").value().total_ps, simulated(job, m).latency_ps);
  // Three ranks on a core compute one after another.
  EXPECT_GE(of(call + "compute 1000000\ndo a\n").value().total_ps, 3'000'000 * kPsPerNs);
  EXPECT_EQ(of(call + "do a\n", sim::Progress::kThread).status().code(), Code::kUnsupported);
}

TEST(Replay, NodesShareCores) {
  machine::Machine m = edr();
  m.node = {
      .cores = 2, .switch_ps = 900 * kPsPerNs, .nodes_per_host = 5, .shared_ps = 70 * kPsPerNs};
  m.node.backlog_byte_fs = 1000;
  const std::string call = "ranks 5\ncall a alltoall count=3000\nrank all\n";
  const auto total_ps = [&](const std::string& lines) {
    const program::Program program = parsed(call + lines);
    return sim::replay(replay_of(program, 1, "alltoall=pairwise"), m).value().total_ps;
  };
  const Shared shared{.collective = Collective::kAlltoall, .ranks = 5, .count = 3000};
  const Limits limits{.nodes = predict::even_nodes(5, 1)};
  const sim::Job job = sim_job(*find_algorithm("alltoall.pairwise"), shared, limits).value();
  EXPECT_EQ(total_ps("do a\n"), simulated(job, m).latency_ps);
  EXPECT_GT(total_ps("repeat 50\ndo a\nend\n"), 25 * total_ps("do a\n"));
}

TEST(Replay, AnAlltoallvByItsTables) {
  const auto program = [](const std::string& second) {
    return "ranks 3\ncall a0 alltoallv send=0,8,16 recv=0,100,0\n"
           "call a1 alltoallv send=100,0,9 recv=8,0,5\n"
           "call a2 alltoallv send=0," +
           second + ",7 recv=16,9,7\nrank 0\ndo a0\nrank 1\ndo a1\nrank 2\ndo a2\n";
  };
  const sim::ReplayReport report = replayed(program("5"), 1, "alltoallv=pairwise");
  EXPECT_EQ(report.bytes, 8 + 16 + 100 + 9 + 5);
  EXPECT_EQ(report.kinds[static_cast<std::size_t>(Collective::kAlltoallv)].calls, 1);
  EXPECT_NE(refusal(program("6")).find("has tables that do not fit"), std::string::npos);
}

TEST(Replay, CallsOfOneAfterAnotherAddUp) {
  const std::string head = "ranks 5\ncall a allreduce count=8 element=8\nrank all\n";
  const std::int64_t one = replayed(head + "do a\n").total_ps;
  const sim::ReplayReport loop = replayed(head + "compute 7000\nrepeat 10\ndo a\nend\n");
  EXPECT_GE(loop.total_ps, 5 * one);
  EXPECT_LE(loop.total_ps, 10 * one + 7000 * kPsPerNs);
  EXPECT_EQ(loop.kinds[static_cast<std::size_t>(Collective::kAllreduce)].calls, 10);
  EXPECT_EQ(loop.kinds[static_cast<std::size_t>(Collective::kAllreduce)].starts, 50);
  const sim::ReplayReport plain =
      replayed(head + "compute 7000\ndo a\ndo a\ndo a\ndo a\nrepeat 2\nrepeat 3\ndo a\nend\nend\n");
  EXPECT_EQ(plain.total_ps, loop.total_ps);
  EXPECT_EQ(plain.messages, loop.messages);
  for (const sim::ReplayReport::RankTimes& times : loop.ranks) {
    EXPECT_EQ(times.compute_ps, 7000 * kPsPerNs);
    EXPECT_EQ(times.compute_ps + times.call_ps, times.end_ps);
  }
}

TEST(Replay, IndependentTeamsRunConcurrently) {
  const std::string both =
      "ranks 8\nteams half blocks 4\ncall a allgather team=half count=100\nrank all\ndo a\n";
  const std::string one = "ranks 4\ncall a allgather count=100\nrank all\ndo a\n";
  EXPECT_EQ(replayed(both).total_ps, replayed(one).total_ps);
  EXPECT_EQ(replayed(both).messages, 2 * replayed(one).messages);
}

// Members in another order than the ranks, and teams that overlap.
TEST(Replay, TeamsHaveRanksOfTheirOwn) {
  const auto chain = [](const std::string& members) {
    return replayed("ranks 5\nteam t " + members +
                        "\ncall a bcast team=t root=1 count=9\nrank 1,2,4\ndo a\nrank 0,3\n",
                    1, "bcast=chain");
  };
  const sim::ReplayReport report = chain("4,1,2");  // 1 -> 2 -> 4
  EXPECT_LT(report.ranks[1].end_ps, report.ranks[2].end_ps);
  EXPECT_LT(report.ranks[2].end_ps, report.ranks[4].end_ps);
  EXPECT_EQ(report.ranks[0].end_ps, 0);
  EXPECT_EQ(report.total_ps, chain("2,4,1").total_ps);  // 4 -> 1 -> 2
}

TEST(Replay, CallsInFlightShareTheNic) {
  const auto of = [](const std::string& steps) {
    return replayed(
        "ranks 3\ncall a bcast count=60000\ncall b bcast count=60000\nrank all\n" + steps, 1,
        "bcast=flat");
  };
  const std::int64_t one = of("do a\n").total_ps;
  const std::int64_t both = of("start a\nstart b\nwait b\nwait a\n").total_ps;
  const std::int64_t in_turn = of("do a\ndo b\n").total_ps;
  const std::int64_t wire =
      2 * 60000 * edr().network.per_byte_fs / 1000;  // the root's two messages
  EXPECT_GE(both, one + wire);
  EXPECT_LE(both, in_turn);
}

// Starts in different orders on different ranks, on teams that overlap.
TEST(Replay, SeveralInFlightOnOverlappingTeams) {
  const sim::ReplayReport report = replayed(
      "ranks 6\nteams row blocks 3\nteams column stride 3\n"
      "call w allreduce count=100 element=8\ncall r allgather team=row count=800\n"
      "call c bcast team=column root=1 count=3000\n"
      "rank 0-4:2\nrepeat 3\nstart w\nstart r\nstart c\ncompute 1000\nwait c\nwait w\nwait r\nend\n"
      "rank 1-5:2\nrepeat 3\nstart c\nstart w as x\ncompute 500\nstart r\nwait r\nwait c\nwait x\n"
      "end\n");
  EXPECT_EQ(report.kinds[static_cast<std::size_t>(Collective::kAllreduce)].calls, 3);
  EXPECT_EQ(report.kinds[static_cast<std::size_t>(Collective::kAllgather)].calls, 6);
  EXPECT_EQ(report.kinds[static_cast<std::size_t>(Collective::kBcast)].calls, 9);
  for (const sim::ReplayReport::RankTimes& times : report.ranks) {
    EXPECT_EQ(times.compute_ps + times.call_ps, times.end_ps);
  }
}

// In a chain the middle rank has to forward: it cannot while it computes, unless a thread does.
TEST(Replay, ComputationDelaysProgress) {
  const std::string lines =
      "ranks 3\ncall a bcast count=8\nrank 0,2\ndo a\nrank 1\nstart a\ncompute 1000000\nwait a\n";
  constexpr std::int64_t kCompute = 1'000'000 * kPsPerNs;
  const sim::ReplayReport caller = replayed(lines, 1, "bcast=chain");
  EXPECT_GT(caller.ranks[2].end_ps, kCompute);
  EXPECT_GT(caller.ranks[1].end_ps, kCompute);
  const sim::ReplayReport thread = replayed(lines, 1, "bcast=chain", sim::Progress::kThread);
  EXPECT_EQ(thread.ranks[2].end_ps,
            replayed("ranks 3\ncall a bcast count=8\nrank all\ndo a\n", 1, "bcast=chain").total_ps);
  EXPECT_EQ(thread.ranks[1].end_ps, kCompute);
}

// Progress is made in every start and wait, for all that is in flight.
TEST(Replay, AnotherWaitMakesProgress) {
  const auto end_of_two = [](const std::string& steps) {
    return replayed(
               "ranks 3\nteam self 1\ncall a bcast count=8\ncall s barrier team=self\n"
               "rank 0,2\ndo a\nrank 1\n" +
                   steps,
               1, "bcast=chain")
        .ranks[2]
        .end_ps;
  };
  const std::int64_t half = end_of_two("start a\ncompute 50000\ndo s\ncompute 50000\nwait a\n");
  const std::int64_t whole = end_of_two("start a\ncompute 100000\nwait a\n");
  EXPECT_EQ(whole - half, 50000 * kPsPerNs);
  // Not between computations.
  EXPECT_EQ(end_of_two("start a\ncompute 50000\ncompute 50000\nwait a\n"), whole);
}

TEST(Replay, ComputationIsScaled) {
  const program::Program program = parsed("ranks 2\nrank all\ncompute 1000\nother scan 10\n");
  sim::Replay replay = replay_of(program, 1);
  replay.compute_scale = 2.5;
  const sim::ReplayReport report = sim::replay(replay, edr()).value();
  EXPECT_EQ(report.total_ps, 2510 * kPsPerNs);
  EXPECT_EQ(report.others, 2);
  EXPECT_EQ(report.ranks[1].other_ps, 10 * kPsPerNs);
}

// Copies and reductions of a node take memory bandwidth away from its ranks that compute.
TEST(Replay, CopiesStretchComputations) {
  machine::Machine m = edr();
  m.memory.node_byte_fs = 50'000;
  const auto compute_ps = [&](std::int64_t permille, const std::string& lines, Rank ppn = 3,
                              sim::Progress progress = sim::Progress::kCaller) {
    m.memory.compute_slowdown_permille = permille;
    const program::Program program = parsed(lines);
    sim::Replay replay = replay_of(program, ppn, "bcast=binomial");
    replay.progress = progress;
    const Result<sim::ReplayReport> report = sim::replay(replay, m);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? report.value().ranks[0].compute_ps : -1;
  };
  const auto compute_ns = [&](auto... what) { return compute_ps(what...) / kPsPerNs; };
  // 40,000 bytes are put into shared memory and copied out of it: 2 times 2,000 ns of the memory.
  const auto program = [](const std::string& first, const std::string& others) {
    return "ranks 3\nteam pair 1,2\ncall b bcast team=pair count=40000\nrank 0\n" + first +
           "\nrank 1-2\n" + others + "\n";
  };
  const std::string beside = program("compute 90000", "do b");
  EXPECT_EQ(compute_ns(0, beside), 90'000);
  EXPECT_EQ(compute_ns(500, beside), 92'000);
  EXPECT_EQ(compute_ns(2500, beside), 100'000);
  m.memory.node_byte_fs = 50'013;
  EXPECT_EQ(compute_ps(13, beside), 90'000 * kPsPerNs + 52'014) << "13 thousandths of 4,001,040";
  EXPECT_EQ(compute_ps(12, beside), 90'000 * kPsPerNs + 48'012);
  m.memory.node_byte_fs = 50'000;
  EXPECT_EQ(compute_ns(500, beside, 1), 90'000) << "on nodes of their own";
  EXPECT_EQ(compute_ns(500, beside, 2), 91'000) << "beside the copy into registered memory";
  EXPECT_EQ(compute_ns(500, program("compute 90000", "compute 90001\ndo b")), 90'000)
      << "one after the other";
  EXPECT_EQ(compute_ns(500, program("compute 89999", "compute 90001\ndo b")), 89'999);
  // What it is made longer by may be busy, too: all of the put, and not the copy, which is later.
  EXPECT_EQ(compute_ns(1000, program("compute 1000", "do b")), 3'000);
  // A thread's own copies are beside the computation of its rank.
  const std::string own =
      "ranks 2\ncall b bcast root=1 count=40000\nrank 0\nstart b\n"
      "compute 90000\nwait b\nrank 1\ndo b\n";
  EXPECT_EQ(compute_ns(500, own, 2, sim::Progress::kThread), 92'000);
  EXPECT_LT(compute_ns(500, own, 2), 92'000) << "its copy has to wait for the computation";
}

TEST(Replay, TheSameAgainIsTheSame) {
  const std::string lines =
      "ranks 7\ncall a allreduce count=1000 element=8\ncall b alltoall count=10\nrank all\n"
      "repeat 5\nstart a\nstart b\ncompute 100\nwait a\nwait b\nend\n";
  const auto with_seed = [&](std::uint64_t seed) {
    return replayed(lines, 2, "", sim::Progress::kCaller,
                    {.skew_ps = 20'000 * kPsPerNs, .seed = seed});
  };
  EXPECT_EQ(with_seed(1).total_ps, with_seed(1).total_ps);
  EXPECT_EQ(with_seed(1).ranks[3].call_ps, with_seed(1).ranks[3].call_ps);
  EXPECT_NE(with_seed(1).total_ps, with_seed(2).total_ps);
}

TEST(Replay, CallsThatDoNotFitAreRefused) {
  const std::string head =
      "ranks 3\ncall a barrier\ncall b bcast root=1 count=8\n"
      "call c bcast root=1 count=16\n";
  EXPECT_EQ(
      refusal(head + "rank 0,1\ndo a\ndo b\nrank 2\ndo a\ndo c\n"),
      "p:11: call 2 on team world is not the same on all ranks: rank 2 calls bcast with root 1 "
      "of 16 elements of 1 bytes, rank 0 (call b, line 4) bcast with root 1 of 8 elements of "
      "1 bytes");
  EXPECT_NE(refusal(head + "rank 0,1\ndo a\nrank 2\ndo b\n").find("is not the same on all ranks"),
            std::string::npos);
}

TEST(Replay, DeadlocksAreRefused) {
  const std::string head = "ranks 3\nteam t 0,1\ncall a barrier\ncall b barrier team=t\n";
  EXPECT_EQ(refusal(head + "rank 0,1\ndo a\ndo a\nrank 2\ndo a\n"),
            "p:8: rank 0 waits for ever in barrier, call 2 on team world, which rank 2 does not "
            "start");
  EXPECT_EQ(refusal(head + "rank 0\ndo a\ndo b\nrank 1\ndo b\ndo a\nrank 2\ndo a\n"),
            "p:7: rank 0 waits for ever in barrier, call 1 on team world, which rank 1 does not "
            "start");
}

// What leads to the end of the program, step by step and message by message, without a gap.
TEST(Replay, TheCriticalPathIsWithoutGaps) {
  const std::string lines =
      "ranks 6\nteams row blocks 3\ncall w allreduce count=100 element=8\n"
      "call r bcast team=row root=1 count=30000\nrank 0-4\nrepeat 3\nstart w\ncompute 700\n"
      "start r\ncompute 4000\nwait r\nwait w\nend\n"
      "rank 5\nrepeat 3\nstart w\nstart r\nwait w\ncompute 9000\nwait r\nend\nother x 50\n";
  for (const sim::Progress progress : {sim::Progress::kCaller, sim::Progress::kThread}) {
    for (const Rank ppn : {1, 3}) {
      const sim::ReplayReport report =
          replayed(lines, ppn, "", progress, {.skew_ps = 2000 * kPsPerNs, .critical_path = true});
      const std::vector<sim::PathStep>& path = report.critical_path;
      ASSERT_GT(path.size(), 5U);
      for (std::size_t i = 0; i < path.size(); ++i) {
        EXPECT_LT(path[i].begin_ps, path[i].end_ps);
        EXPECT_FALSE(path[i].what.empty());
        if (i == 0) continue;
        EXPECT_EQ(path[i].begin_ps, path[i - 1].end_ps) << i;
        EXPECT_EQ(path[i].from, path[i - 1].rank) << i;
      }
      const std::int64_t length_ps = path.back().end_ps - path.front().begin_ps;
      EXPECT_LE(length_ps, report.total_ps);
      EXPECT_GT(length_ps, report.total_ps - 2000 * kPsPerNs);
    }
  }
}

// A rank that computes late holds the others up: its computation is on the path, theirs is not.
TEST(Replay, TheCriticalPathNamesWhoIsWaitedFor) {
  const sim::ReplayReport report = replayed(
      "ranks 4\ncall a bcast root=2 count=8\nrank 0,1,3\ncompute 100\ndo a\nrank 2\n"
      "compute 50000\ndo a\n",
      1, "bcast=flat", sim::Progress::kCaller, {.critical_path = true});
  const std::vector<sim::PathStep>& path = report.critical_path;
  ASSERT_EQ(path.size(), 4U);
  EXPECT_EQ(path[0].what, "compute");
  EXPECT_EQ(path[0].rank, 2);
  EXPECT_EQ(path[0].end_ps, 50'000 * kPsPerNs);
  EXPECT_EQ(path[1].what, "a");
  EXPECT_EQ(path[1].rank, 2);
  EXPECT_EQ(path[2].from, 2);
  EXPECT_NE(path[2].rank, 2);
  EXPECT_EQ(path[3].from, path[3].rank);
  EXPECT_EQ(path[3].end_ps, report.total_ps);
}

TEST(Replay, AnInterruptKeepsWhatIsDone) {
  const program::Program program =
      parsed("ranks 2\ncall a barrier\nrank all\nrepeat 1000000000\ncompute 10\ndo a\nend\n");
  const sim::Options options{.on_progress = [](std::int64_t messages) { return messages < 1000; }};
  const Result<sim::ReplayReport> report = sim::replay(replay_of(program, 1), edr(), options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report.value().interrupted);
  EXPECT_GE(report.value().messages, 1000);
  EXPECT_GT(report.value().total_ps, 500 * 10 * kPsPerNs);
}

}  // namespace
}  // namespace carillon::test
