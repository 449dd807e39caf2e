// SPDX-License-Identifier: Apache-2.0
#include "schedule/ordering.h"

#include <algorithm>
#include <utility>

namespace carillon {
namespace {

std::uint32_t entry(const Clock& clock, std::size_t id) {
  return id < clock.size() ? clock[id] : 0;
}

void advance(Clock* clock, std::size_t id) {
  if (clock->size() <= id) clock->resize(id + 1);
  ++(*clock)[id];
}

}  // namespace

void merge(Clock* into, const Clock& from) {
  if (into->size() < from.size()) into->resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) (*into)[i] = std::max((*into)[i], from[i]);
}

void Ordering::begin(Rank ranks, bool track) {
  track_ = track;
  next_id_ = 0;
  ranks_.resize(static_cast<std::size_t>(ranks));
  for (RankOrder& order : ranks_) order.known = order.active = 0;
}

void Ordering::begin_stage(Rank rank, std::size_t strands) {
  // Late tracking is sound: what this rank did before is ordered before by the join itself.
  track_ = track_ || strands > 1;
  RankOrder& order = ranks_[static_cast<std::size_t>(rank)];
  Clock joined;
  for (const StrandOrder& strand : order.all()) merge(&joined, strand.clock);
  if (order.strands.size() < strands) order.strands.resize(strands);
  for (; order.known < strands; ++order.known) order.strands[order.known].id = next_id_++;
  for (StrandOrder& strand : order.all()) {
    strand.clock = joined;
    advance(&strand.clock, strand.id);
    strand.history.clear();
  }
  order.active = strands;
}

void Ordering::publish(Site site, Clock* clock) {
  clock->clear();
  if (!track_) return;
  StrandOrder& strand = strand_of(site);
  *clock = strand.clock;
  advance(&strand.clock, strand.id);
}

void Ordering::acquire(Site site, const Clock& clock) {
  if (track_) merge(&strand_of(site).clock, clock);
}

std::int32_t Ordering::access(Site site, Place place, std::int64_t length, bool write) {
  RankOrder& order = of(site);
  if (order.active < 2) return -1;
  StrandOrder& own = strand_of(site);
  const auto region = static_cast<std::size_t>(place.region);
  const std::int64_t end = place.offset + length;
  std::int32_t other = -1;
  for (std::size_t i = 0; i < order.active; ++i) {
    const StrandOrder& strand = order.strands[i];
    if (&strand == &own) continue;
    const std::uint32_t seen = entry(own.clock, strand.id);
    const auto check = [&](std::int64_t, std::int64_t, std::uint32_t when) {
      if (when > seen) other = static_cast<std::int32_t>(i);
    };
    strand.history.writes[region].each(place.offset, end, check);
    if (write) strand.history.reads[region].each(place.offset, end, check);
  }
  auto& history = write ? own.history.writes : own.history.reads;
  history[region].assign(place.offset, end, entry(own.clock, own.id));
  return other;
}

Rank Ordering::not_before_end(Rank rank) const {
  Clock joined;
  for (const StrandOrder& strand : ranks_[static_cast<std::size_t>(rank)].all()) {
    merge(&joined, strand.clock);
  }
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    const auto strands = std::as_const(ranks_[other]).all();
    const bool entered = std::any_of(strands.begin(), strands.end(),
                                     [&](const StrandOrder& s) { return entry(joined, s.id) > 0; });
    if (!entered) return static_cast<Rank>(other);
  }
  return -1;
}

}  // namespace carillon
