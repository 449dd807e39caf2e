// SPDX-License-Identifier: Apache-2.0
//
// multicast_skew: how long broadcasts take those who come in time, when one rank is late. Ranks are
// processes of this machine, on nodes that are made up (CARILLON_NODE_RANKS), and multicast over
// its loopback:
//   build/bin/multicast_skew --nodes 4 --ppn 2
// In each round the first rank of a node other than the root's, its leader, is late by 1 to 50 ms,
// drawn by the seed; or, with --any, any rank of such a node. Each figure is the mean over the
// rounds and the ranks in time, from the moment when all are ready.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "support/calls.h"
#include "support/job.h"

namespace carillon {
namespace {

struct Options {
  int nodes = 4, ppn = 2, rounds = 40;
  std::size_t bytes = 65536;
  std::uint64_t seed = 1;
  bool any = false;
  std::vector<std::string> algorithms{"multicast_leader", "multicast_dynamic"};
};

// A barrier in which the library goes on: others may still need something of this rank.
void meet(crl_context_h context, test::Meeting& meeting, int rank, int ranks) {
  const crl_oob_t oob = meeting.oob(rank);
  const char mine = 0;
  std::vector<char> all(static_cast<std::size_t>(ranks));
  void* request = nullptr;
  if (oob.allgather_post(oob.arg, &mine, all.data(), 1, &request) != 0) std::abort();
  while (oob.allgather_test(oob.arg, request) == 1) {
    if (crl_context_progress(context) != CRL_OK) std::abort();
    sched_yield();
  }
}

struct Sums {
  double seconds = 0, count = 0;
};

// One rank's part; its sum over the rounds in which it is in time.
Sums run(const Options& options, bool skewed, int rank, test::Meeting& world,
         test::Meeting& members, test::Meeting& turns) {
  const int ranks = options.nodes * options.ppn;
  crl_context_h context = test::make_context(world, rank);
  crl_team_h team = test::make_team(context, members.oob(rank));
  std::vector<char> data(options.bytes);
  std::mt19937_64 random(options.seed);
  Sums sums;
  constexpr int kWarm = 5;
  for (int round = -kWarm; round < options.rounds; ++round) {
    const int node = 1 + static_cast<int>(random() % static_cast<unsigned>(options.nodes - 1));
    const int place = static_cast<int>(random() % static_cast<unsigned>(options.ppn));
    const auto delay_us = static_cast<useconds_t>(1000 + random() % 49001);
    const int late = node * options.ppn + (options.any ? place : 0);
    meet(context, turns, rank, ranks);
    const test::Stopwatch watch;
    if (skewed && rank == late) usleep(delay_us);
    if (crl_bcast(team, data.data(), data.size(), 0) != CRL_OK) std::abort();
    if (round < 0 || (skewed && rank == late)) continue;
    sums.seconds += watch.seconds();
    sums.count += 1;
  }
  meet(context, turns, rank, ranks);
  crl_team_destroy(team);
  crl_context_destroy(context);
  return sums;
}

// The mean in milliseconds; every rank must end well.
double measure(const Options& options, const std::string& algorithm, bool skewed) {
  const int ranks = options.nodes * options.ppn;
  std::string nodes;
  for (int i = 0; i < options.nodes; ++i) {
    nodes += (i == 0 ? "" : ",") + std::to_string(options.ppn);
  }
  setenv("CARILLON_NODE_RANKS", nodes.c_str(), 1);
  setenv("CARILLON_MULTICAST", "udp:lo", 1);
  setenv("CARILLON_ALGORITHM", ("bcast=" + algorithm).c_str(), 1);
  test::Meeting world(ranks), members(ranks), turns(ranks), results(ranks);
  double mean_ms = 0;
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) std::abort();
  constexpr int kMost_s = 600;
  const auto body = [&](int rank) {
    const Sums mine = run(options, skewed, rank, world, members, turns);
    std::vector<Sums> all(static_cast<std::size_t>(ranks));
    const crl_oob_t oob = results.oob(rank);
    void* request = nullptr;
    if (oob.allgather_post(oob.arg, &mine, all.data(), sizeof mine, &request) != 0) std::abort();
    while (oob.allgather_test(oob.arg, request) == 1) sched_yield();
    Sums total;
    for (const Sums& one : all) {
      total.seconds += one.seconds;
      total.count += one.count;
    }
    const double mean = total.seconds / total.count * 1e3;
    if (rank == 0 && write(pipe_ends[1], &mean, sizeof mean) != sizeof mean) std::abort();
  };
  for (const int status : test::run_processes(ranks, body, kMost_s)) {
    if (status == 0) continue;
    std::fprintf(stderr, "multicast_skew: a rank has ended with %d\n", status);
    std::exit(1);
  }
  if (read(pipe_ends[0], &mean_ms, sizeof mean_ms) != sizeof mean_ms) std::abort();
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return mean_ms;
}

void compare(const Options& options) {
  std::printf("%d nodes of %d, %zu bytes, %d rounds, seed %lu, late: %s; means of those in time\n",
              options.nodes, options.ppn, options.bytes, options.rounds, options.seed,
              options.any ? "any rank" : "a leader");
  std::printf("%-28s %12s %12s %8s\n", "bcast", "nobody late", "one late", "ratio");
  for (const std::string& algorithm : options.algorithms) {
    const double without = measure(options, algorithm, false);
    const double with = measure(options, algorithm, true);
    std::printf("%-28s %9.3f ms %9.3f ms %8.2f\n", algorithm.c_str(), without, with,
                with / without);
  }
}

}  // namespace
}  // namespace carillon

int main(int argc, char** argv) {
  carillon::Options options;
  CLI::App app("broadcasts by multicast, with one rank late");
  app.add_option("--nodes", options.nodes, "made-up nodes")->check(CLI::Range(2, 64));
  app.add_option("--ppn", options.ppn, "ranks on each")->check(CLI::Range(1, 64));
  app.add_option("--rounds", options.rounds, "broadcasts")->check(CLI::PositiveNumber);
  app.add_option("--bytes", options.bytes, "of each");
  app.add_option("--seed", options.seed, "of who is late, and by how much");
  app.add_flag("--any", options.any, "not only leaders are late");
  app.add_option("--algorithms", options.algorithms, "names, as in CARILLON_ALGORITHM=bcast=NAME")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  carillon::compare(options);
}
