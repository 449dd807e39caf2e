// SPDX-License-Identifier: Apache-2.0
//
// What a rank that there is nothing for, and nothing from, costs an alltoallv. Rank 0 of teams of
// several sizes calls it with tables that are empty, which needs no other rank; by how much longer
// that takes in a larger team. With tables that are empty at the same places in all calls, and with
// others in turn: those all go by the whole plan.
//
//   build/bin/sparse_tables
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "carillon/carillon.h"
#include "support/job.h"

namespace {

constexpr int kBatches = 301;
constexpr int kCalls = 100;
constexpr std::size_t kBytes = 8;

void check(crl_status_t status) {
  if (status == CRL_OK) return;
  std::fprintf(stderr, "sparse_tables: %s\n", crl_last_error());
  std::exit(1);
}

// Of the fastest batch: what else the machine does comes on top.
double call_ns(crl_team_h team, bool changes) {
  const auto ranks = static_cast<std::size_t>(crl_team_size(team));
  std::vector<std::int64_t> lengths(ranks, 0);
  const std::vector<std::int64_t> offsets(ranks, 0);
  const std::array<char, kBytes> in = {};
  std::array<char, kBytes> out = {};
  double least = 1e12;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) {
      if (changes) lengths[0] = i % 2 * static_cast<std::int64_t>(kBytes);  // to rank 0 itself
      check(crl_alltoallv(team, in.data(), lengths.data(), offsets.data(), out.data(),
                          lengths.data(), offsets.data()));
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count() / kCalls);
  }
  return least;
}

// Rank 0 prints; the others sleep until it has ended.
void measure(int ranks) {
  carillon::test::Meeting meeting(ranks);
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) std::exit(1);
  const auto body = [&](int rank) {
    crl_context_h context = carillon::test::make_context(meeting, rank);
    crl_team_h team = carillon::test::make_team(context, meeting.oob(rank));
    check(crl_barrier(team));
    if (rank > 0) {
      char word = 0;
      if (read(ends[0], &word, 1) != 1) std::exit(1);
    } else {
      for (const bool changes : {false, true}) {
        const double ns = call_ns(team, changes);
        std::printf("%5d ranks, %s: %8.1f ns\n", ranks, changes ? "other places" : "same places ",
                    ns);
      }
      std::fflush(stdout);
      const std::vector<char> words(static_cast<std::size_t>(ranks));
      if (write(ends[1], words.data(), words.size()) < 0) std::exit(1);
    }
    crl_team_destroy(team);
    crl_context_destroy(context);
  };
  (void)carillon::test::run_processes(ranks, body);
  for (const int end : ends) close(end);
}

}  // namespace

int main() {
  for (const int ranks : {2, 32, 64, 128}) measure(ranks);
}
