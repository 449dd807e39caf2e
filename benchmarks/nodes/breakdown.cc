// SPDX-License-Identifier: Apache-2.0
//
// carillon-breakdown: the program that `carillon bench --breakdown` starts, once on each node. It
// forks the node's ranks. Rank 0 prints one JSON object a line: where the time of an alltoall or
// alltoallv goes, by kind of work, per call, the mean of the ranks.
//
//   carillon-breakdown NODES RANKS_PER_NODE NODE ADDRESS PORT SIZES ALGORITHMS ITERATIONS
//
// NODE -1: all ranks are here, and count as NODES nodes. ALGORITHMS: as CARILLON_ALGORITHM has
// them: "alltoall.pairwise;alltoall.bruck_resident:transfer=sendrecv". An alltoallv has blocks of 0
// to twice the bytes.
//
// Calls follow one another, on the same buffers, which are of crl_alloc. They are counted from the
// fourth on. With the time go, per call and rank: messages sent from where they stood ("gathered"),
// in so many posts ("posts") of so many entries, messages' heads not among them ("entries"), and
// the bytes that puts and sends copied to send them to other nodes ("sent_copied_bytes"), and all
// bytes that were copied, packing among them ("copied_bytes"); and of what is placed, receives
// ("placed") and their entries ("placed_entries").
#include "engine/breakdown.h"

#include <cstdio>
#include <cstdlib>

#include "exchange.h"
#include "ranks.h"
#include "sides.h"

namespace carillon::bench {
namespace {

constexpr int kWarmUp = 3;
constexpr std::array kCountNames = {"gathered",     "posts",  "entries",       "sent_copied_bytes",
                                    "copied_bytes", "placed", "placed_entries"};
constexpr std::size_t kCounts = kCountNames.size();

struct Options {
  Place place;
  std::vector<std::size_t> sizes;
  std::vector<std::string> algorithms;
  int iterations = 100;
};

class Job {
 public:
  Job(Bootstrap& bootstrap, const Options& options)
      : options_(options), bootstrap_(bootstrap), context_(make_any_context(bootstrap)) {}
  ~Job() { crl_context_destroy(context_); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run() {
    for (const std::string& algorithm : options_.algorithms) {
      // What is chosen stays with the team.
      Config settings = context_->engine->settings();
      settings.algorithm = algorithm;
      auto plans = PlanCache::create(settings);
      if (!plans.ok()) give_up(plans.status().to_string());
      context_->plans = std::move(plans.value());
      crl_team_h team = make_team(context_, bootstrap_);
      for (const std::size_t bytes : options_.sizes) measure(team, algorithm, bytes);
      check(crl_barrier(team), "barrier");
      crl_team_destroy(team);
    }
  }

 private:
  void measure(crl_team_h team, const std::string& algorithm, std::size_t bytes);

  const Options& options_;
  Bootstrap& bootstrap_;
  crl_context_h context_;
};

void Job::measure(crl_team_h team, const std::string& algorithm, std::size_t bytes) {
  Exchange exchange(context_, bootstrap_, bytes, algorithm.starts_with("alltoallv.") ? 1 : 0);
  for (int i = 0; i < kWarmUp; ++i) exchange.call_checked(team);
  const std::string used = crl_team_last_algorithm(team);
  Engine& engine = *context_->engine;
  const auto counted = [&]() -> std::array<std::uint64_t, kCounts> {
    if (engine.network() == nullptr) return {};
    const net::Counters& c = engine.network()->counters();
    const wire::Counters& w = engine.network()->wire().counters();
    return {c.gathered,
            c.gathered_posts,
            c.gathered_entries,
            c.sent_copied_bytes,
            c.copied_bytes + w.copied_bytes,
            w.placed,
            w.placed_entries};
  };
  const auto before = counted();
  engine.start_breakdown();
  for (int i = 0; i < options_.iterations; ++i) {
    exchange.call(team);
  }
  const Breakdown& mine = engine.end_breakdown();
  const auto after = counted();
  std::array<double, kWorks + kCounts> sums{}, all{};
  for (std::size_t i = 0; i < kWorks; ++i) sums[i] = static_cast<double>(mine.ns[i]);
  for (std::size_t i = 0; i < kCounts; ++i) {
    sums[kWorks + i] = static_cast<double>(after[i] - before[i]);
  }
  check(crl_allreduce(team, sums.data(), all.data(), all.size(), CRL_FLOAT64, CRL_SUM),
        "allreduce");
  if (bootstrap_.rank() != 0) return;
  const double calls = static_cast<double>(options_.iterations) * bootstrap_.ranks();
  std::printf(
      "{\"algorithm\":\"%s\",\"asked\":\"%s\",\"ranks\":%d,\"bytes\":%zu,"
      "\"calls\":%d,\"network\":\"%s\",",
      used.c_str(), algorithm.c_str(), bootstrap_.ranks(), bytes, options_.iterations,
      engine.network() == nullptr ? "" : engine.network()->name().c_str());
  for (std::size_t i = 0; i < kCounts; ++i) {
    std::printf("\"%s\":%.2f,", kCountNames[i], all[kWorks + i] / calls);
  }
  std::printf("\"us\":{");
  for (std::size_t i = 0; i < kWorks; ++i) {
    std::printf("%s\"%s\":%.3f", i == 0 ? "" : ",", kWorkNames[i].data(), all[i] / calls / 1000);
  }
  std::printf("}}\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  using namespace carillon::bench;
  if (argc != 9) {
    std::fprintf(stderr,
                 "use: %s NODES RANKS_PER_NODE NODE ADDRESS PORT SIZES ALGORITHMS ITERATIONS\n",
                 argv[0]);
    return 2;
  }
  const Options options{.place = parse_place(argv + 1),
                        .sizes = numbers_of(argv[6]),
                        .algorithms = words_of(argv[7], ';'),
                        .iterations = std::atoi(argv[8])};
  return run_ranks(options.place, [&](Bootstrap& bootstrap) { Job(bootstrap, options).run(); });
}
