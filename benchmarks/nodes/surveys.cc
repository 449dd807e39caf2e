// SPDX-License-Identifier: Apache-2.0
//
// carillon-surveys-bench: the program that `carillon bench alltoallv --surveys` starts, once on
// each node. It forks the node's ranks. Rank 0 prints one JSON object a line: alltoallvs by
// pairwise exchange, by Bruck's two phases, merged, with a survey in each call, and as surveys say,
// with tables that repeat and with new ones in each call.
//
//   carillon-surveys-bench NODES RANKS_PER_NODE NODE ADDRESS PORT SIZES ROUNDS CALLS
//
// NODE -1: all ranks are here, and count as NODES nodes. Each way has a team of its own, which does
// 64 calls, some of them checked, before it is measured: from then on one call of 64 surveys. The
// ways take turns in each round, of so many calls one after another; of a round's time per call the
// slowest rank counts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "exchange.h"
#include "ranks.h"
#include "sides.h"

namespace carillon::bench {
namespace {

constexpr int kWarmUp = 64, kChecked = 5;
// More than there are plans kept for, and no divisor of the surveys' interval: no survey and no
// call finds the tables of another one that is remembered.
constexpr int kNewTables = 129;

struct Options {
  Place place;
  std::vector<std::size_t> sizes;
  int rounds = 15;
  int calls = 64;
};

struct Way {
  const char* name;
  const char* algorithm;  // empty: as surveys say
};
constexpr std::array kWays = {
    Way{"pairwise", "alltoallv=pairwise"}, Way{"two_phase", "alltoallv=bruck_two_phase"},
    Way{"merged", "alltoallv=merged"}, Way{"survey", "alltoallv=survey"}, Way{"surveyed", ""}};

// A way's team, plans and buffers.
class Contestant {
 public:
  Contestant(crl_context_h context, Bootstrap& bootstrap, const Way& way, std::size_t bytes,
             int tables)
      : context_(context), way_(way), exchange_(context, bootstrap, bytes, tables) {
    Config settings = context->engine->settings();
    settings.algorithm = way.algorithm;
    settings.surveys = "on";
    auto plans = PlanCache::create(settings);
    if (!plans.ok()) give_up(plans.status().to_string());
    plans_ = std::move(plans.value());
    team_ = make_team(context, bootstrap);
  }
  ~Contestant() { crl_team_destroy(team_); }
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;

  void warm_up() {
    std::swap(context_->plans, plans_);
    for (int i = 0; i < kWarmUp; ++i) {
      i < kChecked ? exchange_.call_checked(team_) : exchange_.call(team_);
    }
    std::swap(context_->plans, plans_);
  }
  /// Microseconds per call, on this rank.
  double round(int calls) {
    using Clock = std::chrono::steady_clock;
    std::swap(context_->plans, plans_);
    check(crl_barrier(team_), "barrier");
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) exchange_.call(team_);
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    std::swap(context_->plans, plans_);
    return time.count() / calls;
  }
  [[nodiscard]] const char* name() const { return way_.name; }
  [[nodiscard]] std::string decisions() const {
    std::vector<crl_decision_t> all(
        static_cast<std::size_t>(crl_team_decisions(team_, nullptr, 0)));
    crl_team_decisions(team_, all.data(), static_cast<int>(all.size()));
    std::string text;
    for (const crl_decision_t& each : all) {
      text += std::string(text.empty() ? "" : ",") + "{\"algorithm\":\"" + each.algorithm +
              "\",\"reason\":\"" + each.reason + "\",\"calls\":" + std::to_string(each.calls) + "}";
    }
    return text;
  }

 private:
  crl_context_h context_;
  const Way& way_;
  std::unique_ptr<PlanCache> plans_;  // the context's, while this one's calls are done
  Exchange exchange_;
  crl_team_h team_ = nullptr;
};

class Job {
 public:
  Job(Bootstrap& bootstrap, const Options& options)
      : options_(options),
        bootstrap_(bootstrap),
        context_(make_context(bootstrap)),
        team_(make_team(context_, bootstrap)) {}
  ~Job() {
    crl_team_destroy(team_);
    crl_context_destroy(context_);
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run() {
    for (const std::size_t bytes : options_.sizes) {
      measure(bytes, "same", 1);
      measure(bytes, "new", kNewTables);
    }
  }

 private:
  void measure(std::size_t bytes, const char* tables, int count);
  void print(const Contestant& one, const std::vector<double>& us, const std::string& head) const;

  const Options& options_;
  Bootstrap& bootstrap_;
  crl_context_h context_;
  crl_team_h team_;
};

void Job::measure(std::size_t bytes, const char* tables, int count) {
  std::vector<std::unique_ptr<Contestant>> all;
  for (const Way& way : kWays) {
    all.push_back(std::make_unique<Contestant>(context_, bootstrap_, way, bytes, count));
    all.back()->warm_up();
  }
  const auto rounds = static_cast<std::size_t>(options_.rounds);
  std::vector<std::vector<double>> mine(all.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < all.size(); ++turn) {
      const std::size_t way = (round + turn) % all.size();
      mine[way].push_back(all[way]->round(options_.calls));
    }
  }
  const std::string head = "\"tables\":\"" + std::string(tables) +
                           "\",\"bytes\":" + std::to_string(bytes) +
                           ",\"ranks\":" + std::to_string(bootstrap_.ranks());
  for (std::size_t way = 0; way < all.size(); ++way) {
    std::vector<double> slowest(rounds);
    check(crl_allreduce(team_, mine[way].data(), slowest.data(), rounds, CRL_FLOAT64, CRL_MAX),
          "allreduce");
    if (bootstrap_.rank() == 0) print(*all[way], slowest, head);
  }
  check(crl_barrier(team_), "barrier");
}

void Job::print(const Contestant& one, const std::vector<double>& us,
                const std::string& head) const {
  std::printf("{%s,\"way\":\"%s\",\"network\":\"%s\",\"us\":[", head.c_str(), one.name(),
              context_->engine->network()->name().c_str());
  for (std::size_t i = 0; i < us.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ",", us[i]);
  std::printf("],\"decisions\":[%s]}\n", one.decisions().c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  using namespace carillon::bench;
  if (argc != 9) {
    std::fprintf(stderr, "use: %s NODES RANKS_PER_NODE NODE ADDRESS PORT SIZES ROUNDS CALLS\n",
                 argv[0]);
    return 2;
  }
  const Options options{.place = parse_place(argv + 1),
                        .sizes = numbers_of(argv[6]),
                        .rounds = std::atoi(argv[7]),
                        .calls = std::atoi(argv[8])};
  return run_ranks(options.place, [&](Bootstrap& bootstrap) { Job(bootstrap, options).run(); });
}
