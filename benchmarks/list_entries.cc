// SPDX-License-Identifier: Apache-2.0
//
// From what length of run on a list that the network takes is cheaper than copying the runs
// together first: the threshold CARILLON_GATHER_BYTES. Two processes on this machine put messages
// of so many runs to each other, in turn as a list and copied together; half of a round trip,
// medians of batches.
//
//   build/bin/list_entries [NETWORK ...]      verbs, or a provider of libfabric (fi_info -l)
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "carillon/carillon.h"
#include "support/job.h"
#include "transport/fabric/fabric.h"
#include "transport/verbs/verbs.h"

namespace {

using namespace carillon;

constexpr int kBatches = 31;
constexpr int kRoundTrips = 60;
constexpr std::array<std::size_t, 4> kRuns = {2, 4, 8, 30};
constexpr std::array<std::size_t, 6> kRunBytes = {16, 64, 128, 256, 512, 1024};
constexpr std::size_t kMostBytes = 30 * 1024;
constexpr std::size_t kApart = 2;  // runs stand so many lengths apart

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "list_entries: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T value(Result<T> result) {
  if (!result.ok()) give_up(result.status().to_string());
  return std::move(result.value());
}

class Network final : public wire::Listener {
 public:
  Network(const std::string& name, test::Meeting& meeting, int rank)
      : wire_(name == "verbs" ? value(verbs::open_wire({}))
                              : value(fabric::open_wire({.provider = name, .domain = ""}))),
        region_((kApart + 2) * kMostBytes),
        registration_(value(wire_->register_memory(region_))) {
    struct Card {
      std::array<std::byte, wire::Wire::kMaxAddressBytes> address;
      wire::RemoteMemory memory;
    } mine{.address = {}, .memory = registration_->remote()};
    const auto address = wire_->address();
    std::copy(address.begin(), address.end(), mine.address.begin());
    std::array<Card, 2> both;
    const crl_oob_t oob = meeting.oob(rank);
    void* request = nullptr;
    oob.allgather_post(oob.arg, &mine, both.data(), sizeof(Card), &request);
    while (oob.allgather_test(oob.arg, request) == 1) sched_yield();
    const Card& other = both[static_cast<std::size_t>(1 - rank)];
    memory_ = other.memory.at((kApart + 1) * kMostBytes);
    peer_ = value(wire_->add_peer(std::span(other.address).first(address.size())));
  }
  void on_put(std::uint32_t /*immediate*/) override { ++arrived_; }

  [[nodiscard]] std::size_t most_pieces() const { return wire_->capabilities().max_pieces; }

  /// Puts a message of so many runs, which have to be copied together first or not.
  void put(std::size_t runs, std::size_t bytes, bool copies) {
    std::byte* const together = region_.data() + kApart * kMostBytes;
    list_.clear();
    for (std::size_t i = 0; i < runs; ++i) {
      std::byte* const run = region_.data() + i * kApart * bytes;
      if (copies) {
        std::memcpy(together + i * bytes, run, bytes);
      } else {
        list_.push_back({run, bytes, registration_.get()});
      }
    }
    if (copies) list_.push_back({together, runs * bytes, registration_.get()});
    while (!value(wire_->put(peer_, list_, memory_, 1, operation_))) progress();
    while (!operation_.done()) progress();
    if (!operation_.status().ok()) give_up(operation_.status().to_string());
  }
  void await_put() {
    for (; arrived_ == 0; progress()) {
    }
    --arrived_;
  }

 private:
  void progress() {
    if (const Status status = wire_->progress(*this); !status.ok()) give_up(status.to_string());
  }

  std::unique_ptr<wire::Wire> wire_;
  std::vector<std::byte> region_;
  std::unique_ptr<wire::Registration> registration_;
  wire::RemoteMemory memory_;
  wire::Peer peer_ = 0;
  wire::Operation operation_;
  std::vector<wire::Piece> list_;
  int arrived_ = 0;
};

double half_round_trip_us(Network& network, int rank, std::size_t runs, std::size_t bytes,
                          bool copies) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    if (rank == 0) network.put(runs, bytes, copies);
    network.await_put();
    if (rank == 1) network.put(runs, bytes, copies);
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
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(rank, &core);
  sched_setaffinity(0, sizeof core, &core);
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
  for (const std::string& name : networks) {
    test::Meeting meeting(2);
    for (const int status : test::run_processes(
             2, [&](int rank) { body(name, meeting, rank); }, 300)) {
      if (status != 0) return 1;
    }
  }
}
