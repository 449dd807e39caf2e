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
#include "transport/net/placed.h"

namespace carillon::net {

class Network;

/// A message that is got, by one post or several.
struct Fetch {
  std::vector<wire::Piece> to;  ///< empty: none is
  std::size_t begun = 0;        ///< so many of these places have been posted,
  std::size_t ended = 0;        ///< and so many filled,
  std::uint64_t bytes = 0;      ///< with so many bytes
  bool in_place = false;        ///< the message may stay there
  int process = -1;             ///< from whose memory
  wire::Operation operation;

  void start(bool stays) {
    begun = ended = 0;
    bytes = 0;
    in_place = stays;
  }
  [[nodiscard]] bool is_under_way() const { return begun != ended; }
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
  /// The message of a strand that is placed.
  Placed& placed_of_strand(std::size_t strand);
  /// Memory for a message of so many bytes that lands nowhere else. One per place, until finish().
  Result<wire::Piece> landing(std::size_t place, std::uint64_t bytes);
  /// Nothing is under way, or all of it is cut off. The network may reach none of it any more.
  void finish();
  /// The processes from whose memory gets are under way, or whose messages are placed.
  [[nodiscard]] std::vector<int> under_way_from() const;
  /// The team fails: whose receives are posted is told so, if it has not been.
  void tell_rest();
  /// Messages that are to be placed are not awaited any more.
  void stop_awaiting();

 private:
  Network& network_;
  Regions regions_;
  std::vector<std::unique_ptr<Fetch>> by_strand_;
  std::vector<std::unique_ptr<Placed>> placed_;  // by strand, too
  std::vector<Block> landings_;                  // by place; no bytes: none
};

}  // namespace carillon::net
