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
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "carillon/carillon.h"
#include "support/job.h"
#include "transport/fabric/fabric.h"
#include "transport/verbs/verbs.h"

namespace {

using namespace carillon;

constexpr int kBatches = 31;
constexpr int kRoundTrips = 100;
constexpr std::array<std::size_t, 5> kSizes = {8, 64, 512, 2048, 4000};
constexpr std::size_t kRegionBytes = 16384;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "wire_latency: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T value(Result<T> result) {
  if (!result.ok()) give_up(result.status().to_string());
  return std::move(result.value());
}

template <typename T>
std::array<T, 2> exchange(test::Meeting& meeting, int rank, const T& mine) {
  const crl_oob_t oob = meeting.oob(rank);
  std::array<T, 2> both;
  void* request = nullptr;
  oob.allgather_post(oob.arg, &mine, both.data(), sizeof(T), &request);
  while (oob.allgather_test(oob.arg, request) == 1) sched_yield();
  return both;
}

/// Sends `bytes` to the other process, and waits for as much from there.
class Way {
 public:
  virtual ~Way() = default;
  virtual void send(std::size_t bytes) = 0;
  virtual void receive(std::size_t bytes) = 0;
};

class Network final : public wire::Listener {
 public:
  Network(const std::string& name, test::Meeting& meeting, int rank)
      : wire_(name == "verbs" ? value(verbs::open_wire({}))
                              : value(fabric::open_wire({.provider = name, .domain = ""}))),
        region_(kRegionBytes),
        registration_(value(wire_->register_memory(region_))) {
    struct Card {
      std::array<std::byte, wire::Wire::kMaxAddressBytes> address;
      wire::RemoteMemory memory;
    } mine{.address = {}, .memory = registration_->remote()};
    const auto address = wire_->address();
    std::copy(address.begin(), address.end(), mine.address.begin());
    const Card other = exchange(meeting, rank, mine)[static_cast<std::size_t>(1 - rank)];
    memory_ = other.memory;
    peer_ = value(wire_->add_peer(std::span(other.address).first(address.size())));
  }
  void on_put(std::uint32_t /*immediate*/) override { ++arrived_; }

  void put(std::size_t bytes) {
    const wire::Piece piece{region_.data(), bytes, registration_.get()};
    finish([&] { return wire_->put(peer_, {&piece, 1}, memory_.at(8192), 1, operation_); });
  }
  void await_put() {
    for (; arrived_ == 0; progress()) {
    }
    --arrived_;
  }
  void send(std::size_t bytes) {
    const wire::Piece piece{region_.data(), bytes, registration_.get()};
    finish([&] { return wire_->send(peer_, {&piece, 1}, 1, operation_); });
  }
  void receive(std::size_t bytes) {
    const wire::Piece piece{region_.data() + 8192, bytes, registration_.get()};
    finish([&] { return wire_->recv(peer_, {&piece, 1}, 1, operation_); });
  }

 private:
  void progress() {
    if (const Status status = wire_->progress(*this); !status.ok()) give_up(status.to_string());
  }
  template <typename Post>
  void finish(Post post) {
    while (!value(post())) progress();
    while (!operation_.done()) progress();
    if (!operation_.status().ok()) give_up(operation_.status().to_string());
  }

  std::unique_ptr<wire::Wire> wire_;
  std::vector<std::byte> region_;
  std::unique_ptr<wire::Registration> registration_;
  wire::RemoteMemory memory_;
  wire::Peer peer_ = 0;
  wire::Operation operation_;
  int arrived_ = 0;
};

class Puts final : public Way {
 public:
  explicit Puts(Network& network) : network_(network) {}
  void send(std::size_t bytes) override { network_.put(bytes); }
  void receive(std::size_t /*bytes*/) override { network_.await_put(); }

 private:
  Network& network_;
};

class Messages final : public Way {
 public:
  explicit Messages(Network& network) : network_(network) {}
  void send(std::size_t bytes) override { network_.send(bytes); }
  void receive(std::size_t bytes) override { network_.receive(bytes); }

 private:
  Network& network_;
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
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(rank, &core);
  sched_setaffinity(0, sizeof core, &core);
  Network network(name, meeting, rank);
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
  for (const std::string& name : networks) {
    test::Meeting meeting(2);
    for (const int status : test::run_processes(
             2, [&](int rank) { body(name, meeting, rank); }, 300)) {
      if (status != 0) return 1;
    }
  }
}
