// SPDX-License-Identifier: Apache-2.0
//
// Two processes on two cores, each with a wire to the other, for what is measured below the engine.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "carillon/carillon.h"
#include "support/job.h"
#include "transport/fabric/fabric.h"
#include "transport/verbs/verbs.h"

namespace carillon::bench {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T value(Result<T> result) {
  if (!result.ok()) give_up(result.status().to_string());
  return std::move(result.value());
}

/// What both give, by rank.
template <typename T>
std::array<T, 2> exchange(test::Meeting& meeting, int rank, const T& mine) {
  const crl_oob_t oob = meeting.oob(rank);
  std::array<T, 2> both;
  void* request = nullptr;
  oob.allgather_post(oob.arg, &mine, both.data(), sizeof(T), &request);
  while (oob.allgather_test(oob.arg, request) == 1) sched_yield();
  return both;
}

inline void bind_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

/// A wire ("verbs", or a provider of libfabric) to the other process, and memory that both may
/// write to.
class WirePair : public wire::Listener {
 public:
  WirePair(const std::string& network, test::Meeting& meeting, int rank, std::size_t bytes)
      : wire_(network == "verbs" ? value(verbs::open_wire({}))
                                 : value(fabric::open_wire({.provider = network, .domain = ""}))),
        memory_(bytes),
        registration_(value(wire_->register_memory(memory_))) {
    struct Card {
      std::array<std::byte, wire::Wire::kMaxAddressBytes> address;
      wire::RemoteMemory memory;
    } mine{.address = {}, .memory = registration_->remote()};
    const auto address = wire_->address();
    std::copy(address.begin(), address.end(), mine.address.begin());
    const Card other = exchange(meeting, rank, mine)[static_cast<std::size_t>(1 - rank)];
    remote_ = other.memory;
    peer_ = value(wire_->add_peer(std::span(other.address).first(address.size())));
  }
  void on_put(std::uint32_t /*immediate*/) override { ++arrived_; }

  void await_put() {
    for (; arrived_ == 0; progress()) {
    }
    --arrived_;
  }
  void put(std::span<const wire::Piece> pieces, std::size_t to) {
    finish([&] { return wire_->put(peer_, pieces, remote_.at(to), 1, operation_); });
  }
  void send(const wire::Piece& piece) {
    finish([&] { return wire_->send(peer_, {&piece, 1}, 1, operation_); });
  }
  void receive(const wire::Piece& piece) {
    finish([&] { return wire_->recv(peer_, {&piece, 1}, 1, operation_); });
  }
  [[nodiscard]] std::byte* at(std::size_t offset) { return memory_.data() + offset; }
  [[nodiscard]] wire::Piece piece(std::size_t offset, std::size_t bytes) {
    return {at(offset), bytes, registration_.get()};
  }
  [[nodiscard]] std::size_t most_pieces() const { return wire_->capabilities().max_pieces; }

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
  std::vector<std::byte> memory_;
  std::unique_ptr<wire::Registration> registration_;
  wire::RemoteMemory remote_;
  wire::Peer peer_ = 0;
  wire::Operation operation_;
  int arrived_ = 0;
};

/// Runs body(network, meeting, rank) in two processes on cores 0 and 1, for each of the networks.
/// The exit status.
template <typename Body>
int run_pairs(const std::vector<std::string>& networks, Body body) {
  constexpr int kTimeout_s = 300;
  for (const std::string& network : networks) {
    test::Meeting meeting(2);
    const auto one = [&](int rank) {
      bind_to_core(rank);
      body(network, meeting, rank);
    };
    for (const int status : test::run_processes(2, one, kTimeout_s)) {
      if (status != 0) return 1;
    }
  }
  return 0;
}

}  // namespace carillon::bench
