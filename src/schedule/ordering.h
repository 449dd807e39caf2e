// SPDX-License-Identifier: Apache-2.0
//
// Happens-before, for the verifier: vector clocks carried by messages, and per rank the bytes that
// each strand has read and written. Two accesses of one rank to the same byte by different
// strands, one of them a write, must be ordered by messages; what a full window happens to order
// does not count, because a transport may have more room.
//
// Costs nothing for teams whose ranks have one strand each, unless asked to track (barrier).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/interval_map.h"
#include "schedule/layout.h"
#include "schedule/machine.h"

namespace carillon {

using Clock = std::vector<std::uint32_t>;  // by strand id; missing entries are 0

/// What both know.
void merge(Clock* into, const Clock& from);

class Ordering {
 public:
  /// Nobody has done anything yet. In the memory that is there.
  void begin(Rank ranks, bool track);

  /// Joins the strands of the rank's stage before and forks those of the next.
  void begin_stage(Rank rank, std::size_t strands);
  /// The strand sends a message: *clock goes with it.
  void publish(Site site, Clock* clock);
  /// The strand has a message that came with this clock.
  void acquire(Site site, const Clock& clock);
  /// Notes the access; returns the strand whose access it is not ordered with, or -1.
  std::int32_t access(Site site, Place place, std::int64_t length, bool write);
  /// Whether each rank had entered the call before this one left it; -1 or one that had not.
  [[nodiscard]] Rank not_before_end(Rank rank) const;

 private:
  struct History {
    std::array<IntervalMap<std::uint32_t>, kRegions> reads, writes;  // value: own clock then
    void clear() {
      for (auto& map : reads) map.clear();
      for (auto& map : writes) map.clear();
    }
  };
  struct StrandOrder {
    std::size_t id = 0;
    Clock clock;
    History history;
  };
  struct RankOrder {
    std::vector<StrandOrder> strands;  // the first `known` are of this run
    std::size_t known = 0;
    std::size_t active = 0;
    [[nodiscard]] std::span<StrandOrder> all() { return std::span(strands).first(known); }
    [[nodiscard]] std::span<const StrandOrder> all() const {
      return std::span(strands).first(known);
    }
  };

  RankOrder& of(Site site) { return ranks_[static_cast<std::size_t>(site.rank)]; }
  StrandOrder& strand_of(Site site) {
    return of(site).strands[static_cast<std::size_t>(site.strand)];
  }

  bool track_ = false;
  std::size_t next_id_ = 0;
  std::vector<RankOrder> ranks_;
};

}  // namespace carillon
