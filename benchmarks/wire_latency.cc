// SPDX-License-Identifier: Apache-2.0
//
// What a message between two processes costs over each network: put with immediate, tagged send and
// recv, and for IP networks a bare TCP socket beside them. Half of a round trip, medians of
// batches; the ways take turns. Both processes are on this machine, polling, on a core each if it
// has two.
//
//   build/bin/wire_latency [NETWORK ...]      verbs, or a provider of libfabric (fi_info -l)
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "wire_pair.h"

namespace {

using namespace carillon;
using bench::exchange;
using bench::give_up;
using bench::WirePair;

constexpr int kBatches = 31;
constexpr int kRoundTrips = 100;
constexpr std::array<std::size_t, 5> kSizes = {8, 64, 512, 2048, 4000};
constexpr std::size_t kRegionBytes = 16384;

/// Sends `bytes` to the other process, and waits for as much from there.
class Way {
 public:
  virtual ~Way() = default;
  virtual void send(std::size_t bytes) = 0;
  virtual void receive(std::size_t bytes) = 0;
};

class Puts final : public Way {
 public:
  explicit Puts(WirePair& network) : network_(network) {}
  void send(std::size_t bytes) override {
    const wire::Piece piece = network_.piece(0, bytes);
    network_.put({&piece, 1}, kRegionBytes / 2);
  }
  void receive(std::size_t /*bytes*/) override { network_.await_put(); }

 private:
  WirePair& network_;
};

class Messages final : public Way {
 public:
  explicit Messages(WirePair& network) : network_(network) {}
  void send(std::size_t bytes) override { network_.send(network_.piece(0, bytes)); }
  void receive(std::size_t bytes) override {
    network_.receive(network_.piece(kRegionBytes / 2, bytes));
  }

 private:
  WirePair& network_;
};

// The floor of what goes over TCP: a socket and nothing else.
class Socket final : public Way {
 public:
  Socket(test::Meeting& meeting, int rank) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const int opened = socket(AF_INET, SOCK_STREAM, 0);
    if (rank == 0 && (bind(opened, generic, bytes) != 0 || listen(opened, 1) != 0 ||
                      getsockname(opened, generic, &bytes) != 0)) {
      give_up("no socket");
    }
    address = exchange(meeting, rank, address)[0];
    if (rank == 0) {
      socket_ = accept(opened, nullptr, nullptr);
      close(opened);
    } else {
      socket_ = opened;
      if (connect(opened, generic, sizeof address) != 0) give_up("no connection");
    }
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Socket() override { close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  void send(std::size_t bytes) override {
    if (::send(socket_, room_.data(), bytes, 0) != static_cast<ssize_t>(bytes)) give_up("send");
  }
  void receive(std::size_t bytes) override {
    for (std::size_t got = 0; got < bytes;) {
      const ssize_t more = recv(socket_, room_.data(), bytes - got, MSG_DONTWAIT);
      if (more > 0) got += static_cast<std::size_t>(more);
      if (more == 0) give_up("the connection was lost");
    }
  }

 private:
  int socket_ = -1;
  std::array<char, kRegionBytes> room_{};
};

double half_round_trip_us(Way& way, int rank, std::size_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRoundTrips; ++i) {
    if (rank == 0) way.send(bytes);
    way.receive(bytes);
    if (rank == 1) way.send(bytes);
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count() / kRoundTrips / 2;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kBatches / 2, values.end());
  return values[kBatches / 2];
}

void body(const std::string& name, test::Meeting& meeting, int rank) {
  WirePair network(name, meeting, rank, kRegionBytes);
  Puts puts(network);
  Messages messages(network);
  Socket socket(meeting, rank);
  for (const std::size_t bytes : kSizes) {
    std::vector<double> put_us, message_us, socket_us;
    for (int i = 0; i < kBatches; ++i) {
      put_us.push_back(half_round_trip_us(puts, rank, bytes));
      message_us.push_back(half_round_trip_us(messages, rank, bytes));
      socket_us.push_back(half_round_trip_us(socket, rank, bytes));
    }
    if (rank != 0) continue;
    std::printf("%-16s %6zu %12.2f %12.2f %12.2f\n", name.c_str(), bytes, median(put_us),
                median(message_us), median(socket_us));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> networks = argc > 1
                                                ? std::vector<std::string>(argv + 1, argv + argc)
                                                : std::vector<std::string>{"net", "tcp;ofi_rxm"};
  std::printf("%-16s %6s %12s %12s %12s   half of a round trip, us, medians\n", "network", "bytes",
              "put", "send/recv", "tcp socket");
  std::fflush(stdout);
  return bench::run_pairs(networks, body);
}
