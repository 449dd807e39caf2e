// SPDX-License-Identifier: Apache-2.0
//
// What one collective reads, and lets others read, in place (exposure.h): gets under way, where
// they land, and the caller's memory that the network may reach meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/net/exposure.h"
#include "transport/net/memory.h"
#include "transport/net/placed.h"

namespace carillon::net {

class Network;

/// A message that is got, or all of a stream from one on, where they stand one behind the other.
/// One get after the other is posted while that before it is under way: the network need not wait
/// for this process.
class Fetch {
 public:
  static constexpr std::size_t kAtOnce = 2;
  static constexpr std::uint64_t kGetBytes = 256 << 10;

  /// The places that the bytes from there on go to, in their order; empty: nothing is got.
  std::vector<wire::Piece> to;
  wire::RemoteMemory from;
  bool in_place = false;    ///< the bytes may stay there
  int process = -1;         ///< from whose memory
  std::uint64_t taken = 0;  ///< bytes of messages that have been taken

  /// `to` has its places.
  void start(const wire::RemoteMemory& where, bool stays);
  /// Nothing is under way, or all of it is cut off.
  void stop();
  /// `to` becomes this memory, a place for each get.
  void divide(const wire::Piece& whole, std::uint64_t most_bytes);

  /// Are there gets whose end has not been taken?
  [[nodiscard]] bool is_under_way() const { return count_ > 0; }
  /// Or that have not ended?
  [[nodiscard]] bool has_open_gets() const;
  [[nodiscard]] std::uint64_t landed() const { return landed_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] bool may_post() const { return count_ < kAtOnce && begun_ < to.size(); }
  /// Of what is to be posted next: the places, at most so many and of so many bytes, and where
  /// their bytes stand.
  [[nodiscard]] std::span<const wire::Piece> next(std::size_t most_places,
                                                  std::uint64_t most_bytes) const;
  [[nodiscard]] wire::RemoteMemory next_from() const { return from.at(asked_); }
  [[nodiscard]] wire::Operation& next_operation() {
    return gets_[(first_ + count_) % kAtOnce].operation;
  }
  void posted(std::span<const wire::Piece> places);
  [[nodiscard]] const wire::Operation& oldest() const { return gets_[first_].operation; }
  /// It has ended well.
  void take_oldest();

 private:
  struct Get {
    wire::Operation operation;
    std::uint64_t bytes = 0;
  };
  std::array<Get, kAtOnce> gets_;
  std::size_t first_ = 0, count_ = 0;                 // of those under way
  std::size_t begun_ = 0;                             // places that have been posted
  std::uint64_t total_ = 0, asked_ = 0, landed_ = 0;  // bytes
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
