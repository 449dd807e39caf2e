// SPDX-License-Identifier: Apache-2.0
//
// A team's pairs with its members on other nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/net/network.h"
#include "transport/net/pair.h"
#include "transport/shm/endpoint.h"

namespace carillon::net {

class Links {
 public:
  /// `first_id`: of as many ids as the team has members; a member's rank is its pair's id.
  Links(Network& network, int members, std::uint32_t first_id)
      : network_(network), pairs_(static_cast<std::size_t>(members)), first_id_(first_id) {}
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// The member `rank` is on another node.
  void add(int rank, PairPlace place, shm::Endpoint& endpoint);
  [[nodiscard]] Network& network() const { return network_; }
  /// Null: the member is on this node.
  [[nodiscard]] Pair* pair(int rank) const { return pairs_[static_cast<std::size_t>(rank)].get(); }

  /// A completed collective had that many messages from the member. `awaited`: it waits to hear
  /// that they have been released.
  void note_received(int rank, std::uint64_t messages, bool awaited) {
    Pair& from = *pair(rank);
    if (from.note_received(messages, awaited)) due_.push_back(&from);
  }
  /// Tells whoever should hear of it what has been completed. `covers_all`: nothing more has been.
  void report(std::uint64_t done, bool covers_all) {
    if (!due_.empty()) tell_due(done, covers_all);
  }
  /// Tells every member in use.
  void tell_all(std::uint64_t done, std::uint64_t call);
  void give_up(std::uint64_t done);
  /// What members have been told of and have not asked for yet is not sent.
  void withdraw_announced();
  /// Has no pair failed?
  [[nodiscard]] bool unbroken() const;
  [[nodiscard]] bool owns(const Pair* pair) const;
  /// Nothing will come from here any more. True once it will not from anywhere either.
  bool close(std::uint64_t done);

 private:
  void tell_due(std::uint64_t done, bool covers_all);

  Network& network_;
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::vector<Pair*> due_;
  std::uint32_t first_id_;
};

}  // namespace carillon::net
