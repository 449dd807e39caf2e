// SPDX-License-Identifier: Apache-2.0
//
// What a call of the C API costs beside the machine's floor: two pinned processes call one
// collective again and again; in turn with it, and over the same kind of memory, two bare loops
// exchange a cache line. Medians of batches; no clock is read inside a batch.
//
//   build/bin/api_latency [BYTES]
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "carillon/carillon.h"
#include "support/job.h"

namespace {

constexpr int kBatches = 101;
constexpr int kCalls = 200;

/// Lines that one rank writes and the other reads, in turn, as a channel's window has them.
struct Lines {
  struct alignas(64) Line {
    std::atomic<std::uint64_t> value;
  };
  std::array<std::array<Line, 4>, 2> of_rank;
};

/// Both write, both read: the least a collective of two ranks can cost.
void exchange(Lines& lines, int rank, std::uint64_t& count) {
  ++count;
  // partner: the acquire load of the other rank
  lines.of_rank[static_cast<std::size_t>(rank)][count % 4].value.store(count,
                                                                       std::memory_order_release);
  auto& other = lines.of_rank[static_cast<std::size_t>(1 - rank)][count % 4].value;
  while (other.load(std::memory_order_acquire) != count) {
  }
}

double batch_ns(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
             .count() /
         kCalls;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kBatches / 2, values.end());
  return values[kBatches / 2];
}

void pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

void check(crl_status_t status) {
  if (status == CRL_OK) return;
  std::fprintf(stderr, "api_latency: %s\n", crl_last_error());
  std::exit(1);
}

struct Case {
  const char* name;
  std::function<void()> call;
};

void body(int rank, std::array<carillon::test::Meeting, 2>& meetings, Lines& lines,
          std::size_t bytes) {
  pin(rank);
  crl_context_h context = carillon::test::make_context(meetings[0], rank);
  crl_team_h team = carillon::test::make_team(context, meetings[0].oob(rank));
  std::vector<float> in(bytes * 2 + 2, 1.0F), out(bytes * 2 + 2);
  const std::size_t count = bytes / sizeof(float);
  std::uint64_t exchanges = 0;
  const std::vector<Case> cases = {
      {"barrier", [&] { check(crl_barrier(team)); }},
      {"allreduce",
       [&] { check(crl_allreduce(team, in.data(), out.data(), count, CRL_FLOAT32, CRL_SUM)); }},
      {"reduce, bcast",
       [&] {
         check(crl_reduce(team, in.data(), out.data(), count, CRL_FLOAT32, CRL_SUM, 0));
         check(crl_bcast(team, out.data(), bytes, 0));
       }},
      {"allgather", [&] { check(crl_allgather(team, in.data(), out.data(), bytes)); }},
      {"alltoall", [&] { check(crl_alltoall(team, in.data(), out.data(), bytes)); }},
  };
  if (rank == 0) std::printf("%zu bytes, 2 ranks, 2 cores; ns, medians\n", bytes);
  for (const Case& one : cases) {
    std::vector<double> floor_ns, call_ns;
    for (int i = 0; i < kBatches; ++i) {
      meetings[1].barrier(rank);
      floor_ns.push_back(batch_ns([&] { exchange(lines, rank, exchanges); }));
      meetings[1].barrier(rank);
      call_ns.push_back(batch_ns(one.call));
    }
    if (rank != 0) continue;
    std::printf("%-14s %8.1f   exchange of a line %6.1f\n", one.name, median(call_ns),
                median(floor_ns));
    std::fflush(stdout);
  }
  crl_team_destroy(team);
  crl_context_destroy(context);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = argc > 1 ? std::strtoul(argv[1], nullptr, 0) : 8;
  void* const memory =
      mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& lines = *new (memory) Lines();
  // One for carillon, whose exchanges may still be under way, and one for the batches.
  std::array<carillon::test::Meeting, 2> meetings{carillon::test::Meeting(2),
                                                  carillon::test::Meeting(2)};
  for (const int status :
       carillon::test::run_processes(2, [&](int rank) { body(rank, meetings, lines, bytes); })) {
    if (status != 0) return 1;
  }
}
