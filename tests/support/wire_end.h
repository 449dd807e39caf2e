// SPDX-License-Identifier: Apache-2.0
//
// One rank's end of a network between processes, as tests of transports use it.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/calls.h"
#include "transport/fabric/fabric.h"
#include "transport/verbs/verbs.h"
#include "transport/wire.h"
#include "transport/wrap/fault.h"

namespace carillon::test {

using wire::Operation;
using wire::Piece;
using wire::RemoteMemory;

inline constexpr std::size_t kRegionBytes = 1 << 20;

// How long anything may take. CARILLON_TEST_PATIENCE_S, where everything is slow.
inline int patience_s() {
  const char* const given = std::getenv("CARILLON_TEST_PATIENCE_S");
  return given == nullptr ? 20 : std::atoi(given);
}

inline std::byte byte_of(int rank, std::size_t index) {
  return static_cast<std::byte>(static_cast<std::size_t>(rank) * 31 + index * 7 + index / 251);
}

// What the meeting's allgather needs, of plain bytes.
template <typename T>
std::vector<T> exchange(Meeting& meeting, int rank, const T& mine) {
  const crl_oob_t oob = meeting.oob(rank);
  std::vector<T> all(static_cast<std::size_t>(oob.size));
  void* request = nullptr;
  EXPECT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), sizeof(T), &request), 0);
  while (oob.allgather_test(oob.arg, request) == 1) {
  }
  return all;
}

struct Card {  // what members tell each other
  std::array<std::byte, wire::Wire::kMaxAddressBytes> address;
  std::size_t address_bytes;
  RemoteMemory memory;
};

// "verbs", or a provider of libfabric; behind "faulty_", with all faults that the contract allows.
inline Result<std::unique_ptr<wire::Wire>> open_wire(const std::string& network) {
  constexpr std::string_view kFaulty = "faulty_";
  if (network.starts_with(kFaulty)) {
    auto inner = open_wire(network.substr(kFaulty.size()));
    if (!inner.ok()) return inner;
    return wrap::with_faults(std::move(inner.value()),
                             {.refuse = 0.1, .delay = 0.1, .reorder = 0.2, .lose = 0.001});
  }
  if (network == "verbs") return verbs::open_wire({});
  return fabric::open_wire({.provider = network, .domain = ""});
}

// One rank's end, with a registered region known to all others.
class End final : public wire::Listener {
 public:
  End(Meeting& meeting, int rank, const std::string& network)
      : meeting_(meeting), rank_(rank), region_(kRegionBytes) {
    auto opened = open_wire(network);
    if (!opened.ok()) ADD_FAILURE() << opened.status().to_string();
    wire_ = std::move(opened.value());
    auto registered = wire_->register_memory(region_);
    if (!registered.ok()) ADD_FAILURE() << registered.status().to_string();
    registration_ = std::move(registered.value());
    Card mine{
        .address = {}, .address_bytes = wire_->address().size(), .memory = registration_->remote()};
    std::copy(wire_->address().begin(), wire_->address().end(), mine.address.begin());
    cards_ = exchange(meeting, rank, mine);
    for (const Card& card : cards_) {
      const auto peer = wire_->add_peer(std::span(card.address).first(card.address_bytes));
      if (!peer.ok()) ADD_FAILURE() << peer.status().to_string();
      peers_.push_back(peer.value());
    }
  }
  void on_put(std::uint32_t immediate) override { ++arrived_[immediate]; }

  [[nodiscard]] wire::Wire& wire() { return *wire_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] wire::Peer peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] RemoteMemory memory_of(int rank) const {
    return cards_[static_cast<std::size_t>(rank)].memory;
  }
  [[nodiscard]] std::byte* region() { return region_.data(); }
  [[nodiscard]] Piece piece(std::size_t offset, std::size_t bytes) {
    return {region_.data() + offset, bytes, registration_.get()};
  }
  [[nodiscard]] int arrived(std::uint32_t immediate) { return arrived_[immediate]; }

  /// Posts as often as it takes; then true.
  template <typename Post>
  bool post(Post call) {
    const Stopwatch watch;
    for (;;) {
      const Result<bool> posted = call();
      if (!posted.ok()) {
        ADD_FAILURE() << posted.status().to_string();
        return false;
      }
      if (posted.value()) return true;
      progress();
      if (watch.seconds() > patience_s()) {
        ADD_FAILURE() << "no room for ever";
        return false;
      }
    }
  }
  void progress() {
    const Status status = wire_->progress(*this);
    if (!status.ok()) ADD_FAILURE() << status.to_string();
  }
  template <typename Done>
  bool until(Done done) {
    const Stopwatch watch;
    while (!done()) {
      progress();
      if (watch.seconds() < patience_s()) continue;
      ADD_FAILURE() << "rank " << rank_ << ": nothing came";
      return false;
    }
    return true;
  }
  bool finish(Operation& operation) {
    if (!until([&] { return operation.done(); })) return false;
    EXPECT_TRUE(operation.status().ok()) << operation.status().to_string();
    return operation.status().ok();
  }
  /// All ranks are here; those that wait go on serving the others.
  void barrier() {
    const crl_oob_t oob = meeting_.oob(rank_);
    std::vector<char> all(static_cast<std::size_t>(oob.size));
    const char mine = 1;
    void* request = nullptr;
    EXPECT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), 1, &request), 0);
    until([&] {
      const bool all_here = oob.allgather_test(oob.arg, request) != 1;
      if (!all_here) sched_yield();  // there may be more ranks than cores
      return all_here;
    });
  }

 private:
  Meeting& meeting_;
  int rank_;
  std::vector<std::byte> region_;
  std::unique_ptr<wire::Wire> wire_;
  std::unique_ptr<wire::Registration> registration_;
  std::vector<Card> cards_;
  std::vector<wire::Peer> peers_;
  std::map<std::uint32_t, int> arrived_;
};

}  // namespace carillon::test
