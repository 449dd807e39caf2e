// SPDX-License-Identifier: Apache-2.0
//
// Datagrams within one process, on a clock of its own: a carrier per member, and what a network
// does to packets, drawn from a seed. The same seed gives the same run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "transport/multicast/carrier.h"
#include "transport/multicast/config.h"

namespace carillon::test {

class DatagramNet {
 public:
  struct Shares {
    double lose = 0, duplicate = 0, reorder = 0, corrupt = 0, refuse = 0;
  };
  struct Options {
    Shares shares;
    std::uint64_t seed = 1;
    std::size_t datagram_bytes = 512;
    std::uint32_t receive_packets = 64;  ///< what comes beyond is dropped
    bool loops_back = false;             ///< multicasts come back to their sender
  };
  explicit DatagramNet(const Options& options) : options_(options), random_(options.seed) {}

  /// The next member's.
  std::unique_ptr<multicast::Carrier> carrier();
  /// Asked of each packet that is sent: true, and it is lost.
  using Filter = std::function<bool(std::size_t from, std::size_t to, std::span<const std::byte>)>;
  void lose(Filter filter) { filter_ = std::move(filter); }
  /// Puts a packet of nobody's into a member's queue.
  void deliver(std::size_t to, const std::vector<std::byte>& bytes) {
    ends_[to].queue.push_back(bytes);
  }
  /// From now on nothing comes to this member or from it.
  void cut_off(std::size_t member) { ends_[member].cut_off = true; }
  /// And what is sent to all does not come to this one.
  void deafen(std::size_t member) { ends_[member].deaf = true; }

  [[nodiscard]] multicast::Nanoseconds now() const { return now_; }
  /// When the next packet arrives; kNever if none is under way.
  [[nodiscard]] multicast::Nanoseconds next_arrival() const {
    return under_way_.empty() ? multicast::kNever : under_way_.begin()->first;
  }
  /// Puts the clock forward, and packets that have arrived by then into the members' queues.
  void advance_to(multicast::Nanoseconds time);
  [[nodiscard]] bool has_arrivals(std::size_t member) const { return !ends_[member].queue.empty(); }
  /// How often its carrier was asked for what has arrived.
  [[nodiscard]] std::uint64_t reads(std::size_t member) const { return ends_[member].reads; }
  bool drawn(double share) { return share > 0 && shares_(random_) < share; }
  /// Packets that found a full queue, and sends that were refused.
  [[nodiscard]] std::uint64_t overflowed() const { return overflowed_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

 private:
  class End;
  using Bytes = std::vector<std::byte>;
  struct Queue {
    std::deque<Bytes> queue;
    bool cut_off = false, deaf = false;
    std::uint64_t reads = 0;
  };
  struct Arrival {
    std::size_t to;
    Bytes bytes;
  };
  bool refuses();
  void send(std::size_t from, std::size_t to, std::span<const std::byte> packet);

  Options options_;
  Filter filter_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> shares_;
  std::vector<Queue> ends_;
  std::multimap<multicast::Nanoseconds, Arrival> under_way_;
  multicast::Nanoseconds now_ = 1;
  std::uint64_t overflowed_ = 0, refused_ = 0;
};

}  // namespace carillon::test
