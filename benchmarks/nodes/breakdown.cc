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
// the bytes that were copied to be sent to other nodes ("sent_copied_bytes").
#include "engine/breakdown.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "ranks.h"
#include "sides.h"

namespace carillon::bench {
namespace {

constexpr int kWarmUp = 3;
constexpr std::array kCountNames = {"gathered", "posts", "entries", "sent_copied_bytes"};
constexpr std::size_t kCounts = kCountNames.size();

struct Options {
  Place place;
  std::vector<std::size_t> sizes;
  std::vector<std::string> algorithms;
  int iterations = 100;
};

std::uint8_t byte_of(int from, int to, std::int64_t i) {
  return static_cast<std::uint8_t>((i * 7 + from * 31 + to * 13) % 251);
}

// Input, output and tables of an alltoall or alltoallv.
class Exchange {
 public:
  Exchange(crl_context_h context, const Bootstrap& bootstrap, std::size_t bytes, bool uneven)
      : context_(context), rank_(bootstrap.rank()), uneven_(uneven), bytes_(bytes) {
    std::size_t in_bytes = 0, out_bytes = 0;
    for (int peer = 0; peer < bootstrap.ranks(); ++peer) {
      send_.add(length(rank_, peer), in_bytes);
      recv_.add(length(peer, rank_), out_bytes);
    }
    in_ = static_cast<std::uint8_t*>(crl_alloc(context, std::max<std::size_t>(in_bytes, 1)));
    out_ = static_cast<std::uint8_t*>(crl_alloc(context, std::max<std::size_t>(out_bytes, 1)));
    if (in_ == nullptr || out_ == nullptr) give_up("no memory from crl_alloc for the buffers");
  }
  ~Exchange() {
    crl_free(context_, in_);
    crl_free(context_, out_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void call(crl_team_h team) {
    if (uneven_) {
      check(crl_alltoallv(team, in_, send_.bytes.data(), send_.offsets.data(), out_,
                          recv_.bytes.data(), recv_.offsets.data()),
            "alltoallv");
    } else {
      check(crl_alltoall(team, in_, out_, bytes_), "alltoall");
    }
  }
  void call_checked(crl_team_h team) {
    const auto each = [](const Table& table, std::uint8_t* memory, auto body) {
      for (std::size_t peer = 0; peer < table.bytes.size(); ++peer) {
        for (std::int64_t i = 0; i < table.bytes[peer]; ++i) {
          body(static_cast<int>(peer), i, memory[table.offsets[peer] + i]);
        }
      }
    };
    each(send_, in_,
         [&](int to, std::int64_t i, std::uint8_t& byte) { byte = byte_of(rank_, to, i); });
    call(team);
    each(recv_, out_, [&](int from, std::int64_t i, const std::uint8_t& byte) {
      if (byte != byte_of(from, rank_, i)) {
        give_up("a wrong answer (a defect of carillon: please report it)");
      }
    });
  }

 private:
  struct Table {
    std::vector<std::int64_t> bytes, offsets;
    void add(std::int64_t length, std::size_t& end) {
      bytes.push_back(length);
      offsets.push_back(static_cast<std::int64_t>(end));
      end += static_cast<std::size_t>(length);
    }
  };
  // Of an alltoallv: nothing, the bytes, or twice as many.
  [[nodiscard]] std::int64_t length(int from, int to) const {
    const int times = uneven_ ? (from * 5 + to * 7) % 3 : 1;
    return times * static_cast<std::int64_t>(bytes_);
  }

  crl_context_h context_;
  int rank_;
  bool uneven_;
  std::size_t bytes_;
  Table send_, recv_;
  std::uint8_t* in_ = nullptr;
  std::uint8_t* out_ = nullptr;
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
  Exchange exchange(context_, bootstrap_, bytes, algorithm.starts_with("alltoallv."));
  for (int i = 0; i < kWarmUp; ++i) exchange.call_checked(team);
  const std::string used = crl_team_last_algorithm(team);
  Engine& engine = *context_->engine;
  const auto counted = [&]() -> std::array<std::uint64_t, kCounts> {
    if (engine.network() == nullptr) return {};
    const net::Counters& c = engine.network()->counters();
    return {c.gathered, c.gathered_posts, c.gathered_entries, c.sent_copied_bytes};
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
