// SPDX-License-Identifier: Apache-2.0
//
// What a group's members have agreed on, and the times that the protocol goes by. Times are in
// nanoseconds of one clock that the caller reads; nobody here does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/multicast/packet.h"

namespace carillon::multicast {

using Nanoseconds = std::uint64_t;
inline constexpr Nanoseconds kNever = UINT64_MAX;
/// What a member that has left in order counts as having acknowledged.
inline constexpr std::uint64_t kAllAcknowledged = UINT64_MAX;
inline constexpr Nanoseconds kMicrosecond = 1000;
inline constexpr Nanoseconds kMillisecond = 1000 * kMicrosecond;

struct Timing {
  /// A gap is asked for after a random time between these: it may be no more than another order,
  /// and others may ask first.
  Nanoseconds nack_least = 50 * kMicrosecond;
  Nanoseconds nack_most = 300 * kMicrosecond;
  /// Asked again after this, twice as long each time, up to `most`.
  Nanoseconds retry = 2 * kMillisecond;
  Nanoseconds retry_most = 64 * kMillisecond;
  /// The source collects askers for so long: one gets the packet alone, several by multicast.
  Nanoseconds gather = 100 * kMicrosecond;
  /// A packet sent to all is not sent to all again within this.
  Nanoseconds holdoff = 1 * kMillisecond;
  /// A source that has unacknowledged packets and sends nothing asks after this, twice as long each
  /// time, up to `most`.
  Nanoseconds ask = 1 * kMillisecond;
  Nanoseconds ask_most = 64 * kMillisecond;
};

/// Members at one place, processes of one node, share what has come there: one of them at a time
/// takes the others' messages in and acknowledges them, for all (Group::take_over). Nothing goes
/// between members of one place.
struct Places {
  std::vector<std::uint32_t> of;  ///< by member: 0, 1, ...
  std::uint32_t count = 0;
};

struct Config {
  Member member = 0;
  std::uint32_t members = 1;
  std::uint32_t window = 256;  ///< packets that a source may have unacknowledged
  std::uint32_t payload_bytes = 1400;
  std::uint32_t radix = 8;            ///< children of each member in the trees that acks climb
  std::uint32_t early_packets = 512;  ///< kept here for receives that are not posted yet
  std::uint64_t seed = 1;             ///< of the random times; each member's own
  Key key;
  Timing timing;
  std::shared_ptr<const Places> places;  ///< null: each member is at a place of its own

  [[nodiscard]] std::uint64_t packets(std::uint64_t message_bytes) const {
    return std::max<std::uint64_t>(1, (message_bytes + payload_bytes - 1) / payload_bytes);
  }
  [[nodiscard]] bool share_place(Member a, Member b) const {
    return places && places->of[a] == places->of[b];
  }
  /// Acks are sent each time that so many packets more have come.
  [[nodiscard]] std::uint64_t ack_step() const { return std::max<std::uint32_t>(1, window / 4); }
};

/// The tree that acks of `source`'s stream climb: complete, of Config::radix, with the source at
/// its root and the others in rank order behind it. Of places: of radix P, as it is not known which
/// member acknowledges for a place.
class AckTree {
 public:
  AckTree(const Config& config, Member source)
      : members_(config.members),
        radix_(config.radix),
        source_(source),
        vrank_((config.member + config.members - source) % config.members),
        places_(config.places.get()) {}

  /// Of all but the source.
  [[nodiscard]] Member parent() const {
    return places_ != nullptr ? source_ : member((vrank_ - 1) / radix_);
  }
  [[nodiscard]] std::uint32_t children() const {
    if (places_ != nullptr) return vrank_ == 0 ? places_->count - 1 : 0;
    const std::uint64_t first = UINT64_C(1) * vrank_ * radix_ + 1;
    if (first >= members_) return 0;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(radix_, members_ - first));
  }
  /// Which of the children it is; children() if it is none.
  [[nodiscard]] std::uint32_t child(Member other) const {
    if (places_ != nullptr) {  // the places behind the source's, in turn
      const std::uint32_t count = places_->count;
      const std::uint32_t place = (places_->of[other] + count - places_->of[source_]) % count;
      return vrank_ == 0 && place > 0 ? place - 1 : children();
    }
    const std::uint64_t first = UINT64_C(1) * vrank_ * radix_ + 1;
    const std::uint32_t vrank = (other + members_ - source_) % members_;
    if (vrank < first || vrank >= first + children()) return children();
    return static_cast<std::uint32_t>(vrank - first);
  }

 private:
  [[nodiscard]] Member member(std::uint32_t vrank) const {
    return static_cast<Member>((UINT64_C(1) * vrank + source_) % members_);
  }
  std::uint32_t members_, radix_;
  Member source_;
  std::uint32_t vrank_;
  const Places* places_;
};

}  // namespace carillon::multicast
