// SPDX-License-Identifier: Apache-2.0
//
// What one collective reads, and lets others read, in place (exposure.h): gets under way, where
// they land, and the caller's memory that the network may reach meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/net/exposure.h"
#include "transport/net/memory.h"

namespace carillon::net {

class Network;

/// A get under way.
struct Fetch {
  wire::Piece to;  ///< no bytes: none is under way
  bool posted = false;
  bool in_place = false;  ///< `to` is the caller's memory
  wire::Operation operation;
};

class Fetches {
 public:
  explicit Fetches(Network& network);
  ~Fetches() { finish(); }
  Fetches(const Fetches&) = delete;
  Fetches& operator=(const Fetches&) = delete;

  [[nodiscard]] Regions& regions() { return regions_; }
  /// The get of a strand.
  Fetch& of_strand(std::size_t strand);
  /// Memory for a message of so many bytes that lands nowhere else. One per place, until finish().
  Result<wire::Piece> landing(std::size_t place, std::uint64_t bytes);
  /// In good order: nothing is under way. The network may reach none of it any more.
  void finish();
  /// No get is under way.
  [[nodiscard]] bool idle() const;

 private:
  Network& network_;
  Regions regions_;
  std::vector<std::unique_ptr<Fetch>> by_strand_;
  std::vector<Block> landings_;  // by place; no bytes: none
};

}  // namespace carillon::net
