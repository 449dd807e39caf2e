// SPDX-License-Identifier: Apache-2.0
//
// carillon-nodes-bench: the program that `carillon bench --compare` starts, once on each node. It
// forks the node's ranks. Rank 0 prints one JSON object a line: the same tree by send and receive
// and by remote write, and the floor on bare sockets.
//
//   carillon-nodes-bench NODES RANKS_PER_NODE NODE ADDRESS PORT COLLECTIVES SIZES KS ITERATIONS
//
// NODE -1: all ranks are here, and count as NODES nodes.
//
// Each call stands between two readings of the clock, after a barrier; the two ways take turns. Of
// a call the slowest rank counts, of the calls the median. The work is counted apart, over calls
// that follow one another.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>

#include "floor.h"
#include "ranks.h"
#include "sides.h"

namespace carillon::bench {
namespace {

constexpr int kCounted = 64;  // calls; the barriers around them hardly show
constexpr std::size_t kLongBytes = 8192;
constexpr std::array<std::size_t, 4> kFloorSizes = {8, 64, 512, 1024};

struct Options {
  Place place;
  std::vector<std::string> collectives;
  std::vector<std::size_t> sizes, ks;
  int iterations = 300;
};

// The job as one rank sees it.
class Job {
 public:
  Job(Bootstrap& bootstrap, const Options& options)
      : options_(options),
        bootstrap_(bootstrap),
        context_(make_context(bootstrap)),
        team_(make_team(context_, bootstrap)),
        sockets_(bootstrap) {}
  ~Job() {
    crl_team_destroy(team_);
    crl_context_destroy(context_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run();

 private:
  void compare(Sides& sides, std::size_t k, const std::string& collective, std::size_t bytes);
  void compare_with_floor(Sides& sides, std::size_t bytes);
  [[nodiscard]] int iterations(std::size_t bytes) const {
    return bytes < kLongBytes ? options_.iterations : std::max(1, options_.iterations / 3);
  }
  /// Medians, in microseconds, of what takes turns.
  std::array<double, 2> take_turns(int iterations, const std::function<void(std::size_t)>& call);
  Work count(const std::function<void()>& call);
  void barrier() { check(crl_barrier(team_), "barrier"); }
  [[nodiscard]] bool speaks() const { return bootstrap_.rank() == 0; }

  const Options& options_;
  Bootstrap& bootstrap_;
  crl_context_h context_;
  crl_team_h team_;
  SocketTree sockets_;
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::array<double, 2> Job::take_turns(int iterations,
                                      const std::function<void(std::size_t)>& call) {
  using Clock = std::chrono::steady_clock;
  const auto count = static_cast<std::size_t>(iterations);
  std::array<std::vector<double>, 2> mine;
  // Who goes first is drawn, alike on all ranks: what the network does every few messages would
  // else always meet the same of the two.
  std::minstd_rand draw;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = draw() >> 16 & 1;
    for (std::size_t turn = 0; turn < 2; ++turn) {
      const std::size_t way = (first + turn) % 2;
      barrier();
      const auto start = Clock::now();
      call(way);
      const std::chrono::duration<double, std::micro> time = Clock::now() - start;
      mine[way].push_back(time.count());
    }
  }
  std::array<double, 2> medians{};
  for (std::size_t way = 0; way < 2; ++way) {
    std::vector<double> slowest(count);
    check(crl_allreduce(team_, mine[way].data(), slowest.data(), count, CRL_FLOAT64, CRL_MAX),
          "allreduce");
    medians[way] = median(slowest);
  }
  return medians;
}

Work Job::count(const std::function<void()>& call) {
  barrier();
  const Work before = work_so_far(*context_);
  for (int i = 0; i < kCounted; ++i) call();
  barrier();
  const Work after = work_so_far(*context_);
  const std::array mine = {after.puts - before.puts,
                           after.gets - before.gets,
                           after.sends - before.sends,
                           after.receives - before.receives,
                           after.completions - before.completions,
                           after.immediates - before.immediates,
                           after.copied_bytes - before.copied_bytes};
  std::array<double, mine.size()> all{};
  check(crl_allreduce(team_, mine.data(), all.data(), all.size(), CRL_FLOAT64, CRL_SUM),
        "allreduce");
  for (double& value : all) value /= kCounted;
  return {all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
}

void print_work(const char* name, const Work& work) {
  std::printf(
      ",\"%s\":{\"puts\":%.1f,\"gets\":%.1f,\"sends\":%.1f,\"receives_posted\":%.1f,"
      "\"completions\":%.1f,"
      "\"immediates\":%.1f,\"copied_bytes\":%.0f}",
      name, work.puts, work.gets, work.sends, work.receives, work.completions, work.immediates,
      work.copied_bytes);
}

void Job::compare(Sides& sides, std::size_t k, const std::string& collective, std::size_t bytes) {
  const Call call{.is_bcast = collective == "bcast", .bytes = bytes};
  sides.prepare(call);
  const auto medians = take_turns(
      iterations(bytes), [&](std::size_t way) { sides.run(static_cast<Side>(way), call); });
  const Work two_sided = count([&] { sides.run(kSendRecv, call); });
  const Work one_sided = count([&] { sides.run(kRdma, call); });
  if (!speaks()) return;
  std::printf(
      "{\"collective\":\"%s\",\"algorithm\":\"%s\",\"k\":%zu,\"ranks\":%d,\"bytes\":%zu,"
      "\"repetitions\":%d,\"sendrecv_us\":%.2f,\"rdma_us\":%.2f",
      collective.c_str(), sides.algorithm(kRdma).c_str(), k, options_.place.ranks(), bytes,
      iterations(bytes), medians[kSendRecv], medians[kRdma]);
  print_work("sendrecv", two_sided);
  print_work("rdma", one_sided);
  std::printf("}\n");
  std::fflush(stdout);
}

void Job::compare_with_floor(Sides& sides, std::size_t bytes) {
  const Call call{.is_bcast = false, .bytes = bytes};
  sides.prepare(call);
  std::vector<float> values(bytes / sizeof(float));
  const auto medians = take_turns(iterations(bytes), [&](std::size_t way) {
    if (way == kRdma) {
      sides.run(kRdma, call);
    } else {
      std::fill(values.begin(), values.end(), 1.0F);
      sockets_.allreduce(values.data(), values.size());
      if (values[0] != static_cast<float>(options_.place.ranks()))
        give_up("a wrong sum on bare sockets");
    }
  });
  if (!speaks()) return;
  std::printf("{\"floor\":true,\"bytes\":%zu,\"socket_us\":%.2f,\"rdma_us\":%.2f}\n", bytes,
              medians[0], medians[kRdma]);
  std::fflush(stdout);
}

void Job::run() {
  if (speaks()) {
    std::printf("{\"network\":\"%s\",\"crowded\":%s}\n",
                context_->engine->network()->name().c_str(),
                team_->team->limits().crowded ? "true" : "false");
  }
  for (std::size_t i = 0; i < options_.ks.size(); ++i) {
    const std::size_t k = options_.ks[i];
    barrier();
    Sides sides(context_, bootstrap_, static_cast<int>(k));
    for (const std::string& collective : options_.collectives) {
      for (const std::size_t bytes : options_.sizes) compare(sides, k, collective, bytes);
    }
    if (k != 1) continue;
    for (const std::size_t bytes : kFloorSizes) compare_with_floor(sides, bytes);
  }
  barrier();
}

Options parse(char** words) {
  Options options{.place = parse_place(words + 1)};
  options.collectives = words_of(words[6]);
  options.sizes = numbers_of(words[7]);
  options.ks = numbers_of(words[8]);
  options.iterations = std::atoi(words[9]);
  return options;
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  if (argc != 10) {
    std::fprintf(stderr,
                 "use: %s NODES RANKS_PER_NODE NODE ADDRESS PORT COLLECTIVES SIZES KS ITERATIONS\n",
                 argv[0]);
    return 2;
  }
  const auto options = carillon::bench::parse(argv);
  return carillon::bench::run_ranks(options.place, [&](carillon::bench::Bootstrap& bootstrap) {
    carillon::bench::Job(bootstrap, options).run();
  });
}
