// SPDX-License-Identifier: Apache-2.0
//
// A node's NIC and bus, where messages wait for one another: for the simulator and the closed forms
// alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "machine/costs.h"

namespace carillon::machine {

/// What takes one thing after another in each direction; busy until those times.
struct Lanes {
  std::int64_t out = INT64_MIN / 2, in = INT64_MIN / 2;
};

/// How long a message keeps the NICs and the buses busy.
struct Occupancy {
  std::int64_t wire_ps = 0;     ///< writer's NIC
  std::int64_t receive_ps = 0;  ///< reader's NIC
  std::int64_t bus_ps = 0;      ///< either bus, for its bytes
};

/// Of a message `levels` up. `gathers`: the NIC reads its list as it is.
inline Occupancy occupancy(const Machine& m, Transfer transfer, std::int32_t levels, bool gathers) {
  const std::int64_t bus = cost(transfer.bytes, m.bus.per_byte_fs);
  const std::int64_t receive = wire_ps(m, transfer, 0, false);
  return {.wire_ps = wire_ps(m, transfer, levels, gathers),
          .receive_ps = m.bus.cut_through ? std::max(receive, bus) : receive,
          .bus_ps = bus};
}

/// The writer's side of a message.
struct Injection {
  std::int64_t begin_ps = 0;  ///< in the NIC
  std::int64_t end_ps = 0;    ///< the last byte has left
  bool waited = false;        ///< for the NIC
};

/// From when the NIC was told. `bus` null: there is none.
inline Injection inject(const Machine& m, Lanes* nic, Lanes* bus, std::int64_t told_ps,
                        const Occupancy& occupancy) {
  std::int64_t ready = told_ps;
  std::int64_t bus_end = told_ps;
  if (bus != nullptr) {
    const std::int64_t begin = std::max(told_ps, bus->out);
    bus_end = begin + m.bus.per_message_ps + occupancy.bus_ps;
    bus->out = bus_end;
    ready = m.bus.cut_through ? begin + m.bus.per_message_ps : bus_end;
  }
  const std::int64_t begin = std::max(ready, nic->out);
  const std::int64_t end = std::max(begin + occupancy.wire_ps, bus_end);
  nic->out = end + m.network.gap_ps;
  return {begin, end, begin > ready};
}

/// A message whose last byte the NIC has at `end_ps`: when it is in the node's memory. `bus` null:
/// there is none.
inline std::int64_t to_memory(const Machine& m, Lanes* bus, std::int64_t end_ps,
                              const Occupancy& occupancy) {
  if (bus == nullptr) return end_ps;
  std::int64_t& busy = m.bus.half_duplex ? bus->out : bus->in;
  busy = m.bus.cut_through ? std::max(end_ps, busy + occupancy.bus_ps)
                           : std::max(end_ps, busy) + occupancy.bus_ps;
  busy += m.bus.per_message_ps;
  return busy;
}

/// The reader's side: from when the last byte could come to the NIC to when the reader can see the
/// message. Call in the order of arrival.
inline std::int64_t land(const Machine& m, Lanes* nic, Lanes* bus, std::int64_t arrival_ps,
                         const Occupancy& occupancy) {
  const std::int64_t end = std::max(arrival_ps, nic->in + occupancy.receive_ps);
  nic->in = end + m.network.gap_ps;
  return to_memory(m, bus, end, occupancy);
}

/// Messages that have been posted and that the NIC has not begun.
class SendQueue {
 public:
  /// From when, at the earliest `now`, another one is taken.
  std::int64_t room(const Machine& m, std::int64_t now) {
    while (head_ < begins_.size() && begins_[head_] <= now) ++head_;
    if (head_ == begins_.size()) {
      begins_.clear();
      head_ = 0;
    }
    const auto depth = static_cast<std::size_t>(m.network.send_queue);
    return begins_.size() - head_ < depth ? now : begins_[begins_.size() - depth];
  }
  /// One more, which begins then.
  void add(std::int64_t begin_ps) {
    if (head_ > 64 && head_ * 2 > begins_.size()) {
      begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    begins_.push_back(begin_ps);
  }

 private:
  std::vector<std::int64_t> begins_;  // those before head_ have begun
  std::size_t head_ = 0;
};

}  // namespace carillon::machine
