// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/endpoint.h"

#include <algorithm>
#include <array>
#include <span>

namespace carillon::shm {
namespace {

// The place of each member among those of its node, in the order of ranks; 0 elsewhere.
std::vector<std::size_t> places_on_node(const std::vector<Member>& members) {
  std::vector<std::size_t> places(members.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].node_rank >= 0) places[i] = next++;
  }
  return places;
}

}  // namespace

void Endpoint::open_area(Segment& segment, std::uint64_t offset, std::uint64_t generation) {
  auto* const area = reinterpret_cast<Progress*>(segment.base() + offset + AreaLayout::progress());
  // partner: refresh_done, by way of the exchange in which the team agrees
  area->done.store(generation << kDoneBits, std::memory_order_release);
}

void Endpoint::give_up_area(Segment& segment, std::uint64_t offset, int error) {
  auto* const area = reinterpret_cast<Progress*>(segment.base() + offset + AreaLayout::progress());
  const std::uint64_t word = area->done.load(std::memory_order_relaxed);
  // partner: refresh_done
  area->done.store((word & ~kDoneMask) | (kDoneMask - static_cast<std::uint64_t>(error)),
                   std::memory_order_release);
}

Endpoint::Endpoint(Segment& segment, const std::vector<Member>& members, int rank,
                   const AreaLayout& layout)
    : peers_(members.size()), rank_(rank) {
  constexpr std::array kAll = {Audience::kNode, Audience::kDomain};
  const std::span<const Audience> audiences(kAll.data(), layout.has_domains ? 2 : 1);
  const auto own = static_cast<std::size_t>(rank);
  const std::vector<std::size_t> places = places_on_node(members);
  const auto at = [&](std::size_t member, std::size_t offset) {
    return segment.base() + members[member].area.area + offset;
  };
  // What the member has for messages of the writer.
  const auto acks = [&](std::size_t member, std::size_t writer) {
    return reinterpret_cast<Acks*>(at(member, AreaLayout::acks(places[writer])));
  };
  const auto pair_lines = [&](std::size_t member, std::size_t writer) {
    return reinterpret_cast<Line*>(segment.base() + members[member].area.pair_lines +
                                   AreaLayout::pair_lines(places[writer]));
  };
  generation_ = members[own].generation;
  mine_ = reinterpret_cast<Progress*>(at(own, AreaLayout::progress()));
  for (std::size_t i = 0; i < members.size(); ++i) {
    Peer& peer = peers_[i];
    peer.node_rank = members[i].node_rank;
    peer.generation = members[i].generation;
    peer.in_domain = members[i].in_domain;
    if (peer.node_rank < 0) continue;
    peer.progress = reinterpret_cast<const Progress*>(at(i, AreaLayout::progress()));
    for (const Audience audience : audiences) {
      peer.shared_lines[audience] =
          reinterpret_cast<const Line*>(at(i, layout.shared_lines(audience)));
    }
    peer.out_lines = pair_lines(i, own);
    peer.in_lines = pair_lines(own, i);
    peer.out_acks = acks(i, own);
    peer.in_acks = acks(own, i);
  }
  for (const Audience audience : audiences) {
    shared_[audience].lines = reinterpret_cast<Line*>(at(own, layout.shared_lines(audience)));
  }
}

void Endpoint::give_up(int error) {
  set_done(kDoneMask - static_cast<std::uint64_t>(error));
  // Before the callers write to their buffers. partner: the fences in Run::stands, sources_stand
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Endpoint::refresh_done(Peer& peer) {
  // partner: set_done of the peer; what it read before is not read again
  const std::uint64_t word = peer.progress->done.load(std::memory_order_acquire);
  if (word >> kDoneBits != peer.generation) {
    peer.known_done = kDoneMask;  // the peer is done with the whole team
  } else {
    peer.known_done = std::max(peer.known_done, word & kDoneMask);
  }
}

bool Endpoint::pair_released(Peer& to, std::uint64_t number, std::uint64_t collective) {
  if (collective <= to.known_done) return true;
  refresh_done(to);
  if (collective <= to.known_done) return true;
  // partner: the store in Run::tell of the peer
  return to.out_acks->pair.load(std::memory_order_acquire) > number;
}

bool Endpoint::shared_released(Audience audience, std::uint64_t number, std::uint64_t collective) {
  std::uint64_t least = kDoneMask;
  bool released = true;
  for (int i = 0; i < size(); ++i) {
    Peer& reader = peer(i);
    if (i == rank_ || reader.remote != nullptr) continue;
    if (audience == Audience::kDomain && !reader.in_domain) continue;
    if (collective > reader.known_done) refresh_done(reader);
    least = std::min(least, reader.known_done);
    if (collective > reader.known_done &&
        // partner: the store in Run::tell of the reader
        reader.out_acks->of(audience).load(std::memory_order_acquire) <= number) {
      released = false;
      break;
    }
  }
  if (released) shared_[audience].known_done = std::max(shared_[audience].known_done, least);
  return released;
}

bool Endpoint::everybody_done(std::uint64_t collectives) {
  return std::all_of(peers_.begin(), peers_.end(), [&](Peer& peer) {
    if (peer.node_rank < 0) return true;
    if (peer.known_done < collectives) refresh_done(peer);
    return peer.known_done >= collectives;
  });
}

}  // namespace carillon::shm
