// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>

#include "base/copy.h"
#include "cluster/shape.h"
#include "reduce/kernels.h"
#include "support/failure.h"
#include "support/machine.h"
#include "support/median.h"

namespace carillon::cli {
namespace {

using machine::MemoryCost;
using machine::PingPong;

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::nanoseconds(now).count());
}

// Until a rank has gone through its pool of 4 MiB, its messages touch new pages.
int warm_calls(std::size_t bytes) {
  constexpr std::size_t kPool = std::size_t{5} << 20;
  return static_cast<int>(
      std::clamp<std::size_t>(kPool / std::max<std::size_t>(bytes, 1), 20, 1200));
}

// How many calls are timed together: long enough for the clock, short enough to be undisturbed.
int calls_at_once(std::size_t bytes) { return bytes > 65536 ? 4 : bytes > 4096 ? 8 : 24; }

constexpr int kBatches = 15;

// The least of several runs: what the machine does when nobody is in the way.
double least_ns(const std::function<void()>& body) {
  double least = 1e18;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = now_ns();
    body();
    least = std::min(least, now_ns() - begin);
  }
  return least;
}

// Of an operation on vectors of doubles, whose result is not to be thought away.
MemoryCost measure_memory(std::int64_t cache_bytes,
                          const std::function<void(std::size_t count)>& operate) {
  constexpr int kCalls = 1000;
  const auto per_call = [&](std::int64_t bytes, int calls) {
    const std::size_t count = static_cast<std::size_t>(bytes) / sizeof(double);
    operate(count);
    return least_ns([&] {
             for (int i = 0; i < calls; ++i) operate(count);
           }) /
           calls;
  };
  const std::int64_t fits = std::min<std::int64_t>(cache_bytes / 8, 65536);
  const double small = per_call(8, kCalls), middle = per_call(fits, kCalls / 10);
  const std::int64_t exceeds = 16 * std::max<std::int64_t>(cache_bytes, 1 << 20);
  MemoryCost cost;
  cost.cached_ns_per_byte = std::max(0.0, (middle - small) / static_cast<double>(fits - 8));
  cost.call_ns = std::max(0.0, small - 8 * cost.cached_ns_per_byte);
  cost.ns_per_byte =
      std::max(cost.cached_ns_per_byte, per_call(exceeds, 1) / static_cast<double>(exceeds));
  return cost;
}

// What stands before it is in memory.
void keep() { std::atomic_signal_fence(std::memory_order_seq_cst); }

std::vector<double> operand(std::int64_t cache_bytes) {
  const std::int64_t longest = 16 * std::max<std::int64_t>(cache_bytes, 1 << 20);
  return std::vector<double>(static_cast<std::size_t>(longest) / sizeof(double), 1.0);
}

MemoryCost measure_copy(std::int64_t cache_bytes) {
  const std::vector<double> from = operand(cache_bytes);
  std::vector<double> to = from;
  return measure_memory(cache_bytes, [&](std::size_t count) {
    copy_memory(to.data(), from.data(), count * sizeof(double));
    keep();
  });
}

// What a run of a list costs more than its bytes: short ones one by one against all of them at
// once.
double measure_copy_run() {
  constexpr std::size_t kRuns = 64, kBytes = 8 * kRuns;
  constexpr int kCalls = 1000;
  const std::vector<std::byte> from(2 * kBytes);
  std::vector<std::byte> to(kBytes);
  const auto per_copy = [&](std::size_t runs) {
    std::size_t length = kBytes / runs;
    asm("" : "+r"(length));  // a list's is not known when the program is compiled
    return least_ns([&] {
             for (int call = 0; call < kCalls; ++call) {
               for (std::size_t i = 0; i < runs; ++i) {
                 copy_memory(to.data() + i * length, from.data() + 2 * i * length, length);
               }
               keep();
             }
           }) /
           kCalls;
  };
  return std::max(0.0, (per_copy(kRuns) - per_copy(1)) / (kRuns - 1));
}

MemoryCost measure_reduce(std::int64_t cache_bytes) {
  const std::vector<double> left = operand(cache_bytes);
  const std::vector<double> right = operand(cache_bytes);
  std::vector<double> sum = left;
  const Kernel add = find_kernel(CRL_SUM, CRL_FLOAT64);
  return measure_memory(cache_bytes, [&](std::size_t count) {
    add(sum.data(), left.data(), right.data(), count);
    keep();
  });
}

// The time of one of `times` calls one after another; of a rank, the median of some such times.
double time_calls(Player& player, std::size_t bytes, int times,
                  const std::function<void(int i)>& call) {
  constexpr int kTimed = 41;
  for (int i = warm_calls(bytes) / times; i >= 0; --i) {
    for (int each = 0; each < times; ++each) call(each);
  }
  std::vector<double> batches;
  for (int batch = 0; batch < kTimed; ++batch) {
    player.start_together();
    const double begin = now_ns();
    for (int each = 0; each < times; ++each) call(each);
    batches.push_back((now_ns() - begin) / times);
  }
  return median(std::move(batches));
}

double clock_cost_ns() {
  constexpr int kTimes = 1000;
  const double begin = now_ns();
  for (int i = 0; i < kTimes; ++i) now_ns();
  return (now_ns() - begin) / kTimes;
}

// How long the call takes a root that has just been sent something.
double time_root(Player& player, std::vector<char>& buffer) {
  constexpr int kRounds = 300;
  const double clock_ns = clock_cost_ns();
  std::vector<double> times;
  for (int i = 0; i < 2 * kRounds; ++i) {
    const double begin = now_ns();
    player.check(crl_bcast(player.team(), buffer.data(), buffer.size(), i % 2));
    if (i % 2 == player.rank()) times.push_back(now_ns() - begin);
  }
  return std::max(0.0, median(std::move(times)) - clock_ns);
}

void play_ping_pong(Player& player) {
  for (std::size_t i = 0; i < PingPong::kBytes.size(); ++i) {
    std::vector<char> buffer(static_cast<std::size_t>(PingPong::kBytes[i]), 1);
    const double one_way =
        time_calls(player, buffer.size(), calls_at_once(buffer.size()), [&](int each) {
          player.check(crl_bcast(player.team(), buffer.data(), buffer.size(), each % 2));
        });
    const double root = time_root(player, buffer);
    if (player.rank() == 0) player.result(i) = {.ns = {one_way, root}};
  }
}

// Two processes that are bcast.binomial's ranks 0 and 1 in turn as root. `parameters` as in
// CARILLON_ALGORITHM. Messages are copied through shared memory, as a machine file has it.
PingPong measure_ping_pong(Seats seats, const std::string& parameters = "") {
  seats.lending = Seats::Lending::kNever;
  const auto results = play(2, seats, "bcast=binomial" + parameters, play_ping_pong);
  PingPong pings;
  for (std::size_t i = 0; i < PingPong::kBytes.size(); ++i) {
    pings.points[i] = {results[i].ns[0], results[i].ns[1]};
  }
  return pings;
}

// Of messages that go so many one way, then so many the other way, the time of one.
double measure_bursts(const Seats& seats, std::int64_t bytes, int burst) {
  const auto results = play(2, seats, "bcast=binomial", [bytes, burst](Player& player) {
    std::vector<char> buffer(static_cast<std::size_t>(bytes), 1);
    const int rounds = std::max(1, calls_at_once(buffer.size()) / (2 * burst));
    const double ns = time_calls(player, buffer.size(), rounds * 2 * burst, [&](int each) {
      player.check(crl_bcast(player.team(), buffer.data(), buffer.size(), each / burst % 2));
    });
    if (player.rank() == 0) player.result(0).ns[0] = ns;
  });
  return results.front().ns[0];
}

std::int64_t cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 1 << 20;
}

}  // namespace

void measure_node(machine::Measured* measured) {
  measured->node = measure_ping_pong({});
  measured->node_one_core = measure_ping_pong({.one_core = true});
  for (std::size_t i = 0; i < measured->lent_ns.size(); ++i) {
    measured->lent_ns[i] =
        measure_bursts({.lending = Seats::Lending::kAlways}, machine::Measured::kLentBytes[i], 1);
  }
}

void measure_network(const std::vector<pid_t>& cluster, machine::Measured* measured) {
  const Seats nodes{.between_nodes = true, .nodes = cluster};
  measured->one_sided = measure_ping_pong(nodes);
  measured->two_sided = measure_ping_pong(nodes, ":transfer=sendrecv");
  const Seats one_core{.between_nodes = true, .one_core = true, .nodes = cluster};
  measured->one_sided_one_core = measure_ping_pong(one_core);
  for (std::size_t i = 0; i < measured->long_one_core_ns.size(); ++i) {
    measured->long_one_core_ns[i] = measure_bursts(one_core, machine::Measured::kLongBytes[i], 1);
  }
  measured->burst_one_core_ns = measure_bursts(one_core, 8, machine::Measured::kBurst);
}

machine::Measured measure_machine(const std::vector<pid_t>& cluster) {
  machine::Measured measured;
  measured.cores = usable_cores();
  if (!cluster.empty()) measured.nodes_per_host = kMaxNodes;
  measured.cache_bytes = cache_bytes();
  measured.copy = measure_copy(measured.cache_bytes);
  measured.copy_run_ns = measure_copy_run();
  measured.reduce = measure_reduce(measured.cache_bytes);
  measure_node(&measured);
  measure_network(cluster, &measured);
  return measured;
}

std::vector<Timed> measure_collective(Collective collective, int ranks, const Seats& seats,
                                      const std::vector<std::int64_t>& sizes) {
  if (ranks > kMaxPlayers) fail("at most {} ranks can be timed", kMaxPlayers);
  if (sizes.size() > Meeting::kResults) fail("too many sizes to be timed");
  std::vector<Timed> list;
  for (const std::int64_t bytes : sizes) {
    const int times = calls_at_once(static_cast<std::size_t>(bytes)) / ranks * ranks;
    list.push_back({.collective = collective, .bytes = bytes, .times = std::max(times, ranks)});
  }
  const auto results = play(ranks, seats, "", [&](Player& player) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto bytes = static_cast<std::size_t>(list[i].bytes);
      const std::size_t room = bytes * static_cast<std::size_t>(ranks);
      std::vector<char> in(room, 1), out(room, 2);
      const auto call = [&](int each) {
        crl_team_h team = player.team();
        switch (collective) {
          case Collective::kBcast:
            return player.check(crl_bcast(team, in.data(), bytes, each % ranks));
          case Collective::kAlltoall:
            return player.check(crl_alltoall(team, in.data(), out.data(), bytes));
          default:
            return player.check(crl_allreduce(team, in.data(), out.data(),
                                              bytes / sizeof(std::int64_t), CRL_INT64, CRL_SUM));
        }
      };
      const double ns = time_calls(player, bytes, list[i].times, call);
      if (player.rank() != 0) continue;
      player.result(i).ns[0] = ns;
      std::snprintf(player.result(i).text, sizeof player.result(i).text, "%s",
                    crl_team_last_algorithm(player.team()));
    }
  });
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].choice = value_or_fail(parse_choice(results[i].text));
    list[i].us = results[i].ns[0] / 1e3;
  }
  return list;
}

}  // namespace carillon::cli
