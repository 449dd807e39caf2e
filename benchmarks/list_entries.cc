// SPDX-License-Identifier: Apache-2.0
//
// From what length of run on a list that the network takes is cheaper than copying the runs
// together first: the threshold CARILLON_GATHER_BYTES. Two processes on this machine put messages
// of so many runs to each other, in turn as a list and copied together; half of a round trip,
// medians of batches.
//
//   build/bin/list_entries [NETWORK ...]      verbs, or a provider of libfabric (fi_info -l)
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "wire_pair.h"

namespace {

using namespace carillon;
using bench::WirePair;

constexpr int kBatches = 31;
constexpr int kRoundTrips = 60;
constexpr std::array<std::size_t, 4> kRuns = {2, 4, 8, 30};
constexpr std::array<std::size_t, 6> kRunBytes = {16, 64, 128, 256, 512, 1024};
constexpr std::size_t kMostBytes = 30 * 1024;
constexpr std::size_t kApart = 2;  // runs stand so many lengths apart

class Network final : public WirePair {
 public:
  Network(const std::string& name, test::Meeting& meeting, int rank)
      : WirePair(name, meeting, rank, (kApart + 2) * kMostBytes) {}

  /// Puts a message of so many runs, which have to be copied together first or not.
  void put_runs(std::size_t runs, std::size_t bytes, bool copies) {
    constexpr std::size_t kTogether = kApart * kMostBytes;
    list_.clear();
    for (std::size_t i = 0; i < runs; ++i) {
      const std::size_t run = i * kApart * bytes;
      if (copies) {
        std::memcpy(at(kTogether + i * bytes), at(run), bytes);
      } else {
        list_.push_back(piece(run, bytes));
      }
    }
    if (copies) list_.push_back(piece(kTogether, runs * bytes));
    put(list_, (kApart + 1) * kMostBytes);
  }

 private:
  std::vector<wire::Piece> list_;
};

double half_round_trip_us(Network& network, int rank, std::size_t runs, std::size_t bytes,
                          bool copies) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    if (rank == 0) network.put_runs(runs, bytes, copies);
    network.await_put();
    if (rank == 1) network.put_runs(runs, bytes, copies);
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count() / kRoundTrips / 2;
}

// Of the median with a confidence of 95 %: the 10th least and the 10th greatest of 31.
struct Spread {
  double low = 0, median = 0, high = 0;
};
Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[9], values[kBatches / 2], values[kBatches - 10]};
}

void body(const std::string& name, test::Meeting& meeting, int rank) {
  Network network(name, meeting, rank);
  for (const std::size_t runs : kRuns) {
    if (runs > network.most_pieces()) continue;
    for (const std::size_t bytes : kRunBytes) {
      std::vector<double> copied_us, difference_us;
      for (int i = 0; i < kBatches; ++i) {
        const double copied = half_round_trip_us(network, rank, runs, bytes, true);
        copied_us.push_back(copied);
        difference_us.push_back(half_round_trip_us(network, rank, runs, bytes, false) - copied);
      }
      if (rank != 0) continue;
      const Spread difference = spread_of(difference_us);
      std::printf("%-16s %5zu %10zu %12.2f %12.2f   [%.2f %.2f]\n", name.c_str(), runs, bytes,
                  spread_of(copied_us).median, difference.median, difference.low, difference.high);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> networks = argc > 1
                                                ? std::vector<std::string>(argv + 1, argv + argc)
                                                : std::vector<std::string>{"tcp;ofi_rxm"};
  std::printf("%-16s %5s %10s %12s %12s   95 %% interval\n", "network", "runs", "of bytes",
              "copied us", "list, more");
  std::fflush(stdout);
  return bench::run_pairs(networks, body);
}
