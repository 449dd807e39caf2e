// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/pool.h"

#include <algorithm>
#include <utility>

namespace carillon::shm {
namespace {

constexpr int kLookAhead = 8;

}  // namespace

Pool::Pool(Segment& segment, int node_rank, std::uint64_t chunk_bytes, int guaranteed,
           int most_handed)
    : stocks_(static_cast<std::size_t>(segment.ranks())),
      most_handed_(most_handed),
      reserve_(segment.reserve(node_rank)),
      reserve_end_(segment.heap(node_rank)),
      guaranteed_(guaranteed) {
  for (Stocks& stocks : stocks_) {
    for (Stock& stock : stocks) stock.most = std::min(kFirstHanded, most_handed);
  }
  std::uint64_t offset = segment.pool(node_rank);
  const PoolSizes sizes = segment.pool_sizes();
  const auto fill = [&](Ring& ring, std::uint64_t chunk, std::uint64_t share) {
    ring.bytes = chunk;
    for (std::uint64_t used = 0; used + chunk <= share; used += chunk, offset += chunk) {
      ring.chunks.push_back({.offset = offset});
    }
    ring.chunks.reserve(ring.chunks.size() + kMostGiven);
  };
  fill(small_, kSmallBytes, sizes.small_bytes);
  fill(large_, whole_lines(chunk_bytes), sizes.large_bytes);
}

bool Pool::busy(Chunk& chunk) {
  Letter& letter = chunk.letter;
  if (letter.endpoint == nullptr) return false;
  Endpoint& endpoint = *letter.endpoint;
  const Audience audience = letter.peer == kToAll ? Audience::kNode : Audience::kDomain;
  const bool released =
      letter.peer < 0
          ? endpoint.shared_released(audience, letter.number, letter.collective)
          : endpoint.pair_released(endpoint.peer(letter.peer), letter.number, letter.collective);
  if (released) letter.endpoint = nullptr;
  return !released;
}

Pool::Chunk* Pool::find_free(Ring& ring) {
  const std::size_t count = ring.chunks.size();
  const std::size_t tries = std::min<std::size_t>(count, kLookAhead);
  for (std::size_t i = 0; i < tries; ++i) {
    Chunk& chunk = ring.chunks[ring.next];
    ring.next = ring.next + 1 == count ? 0 : ring.next + 1;
    if (!busy(chunk)) return &chunk;
  }
  return nullptr;
}

Pool::Chunk* Pool::grow(Ring& ring, const Letter& wanted) {
  used_up_ = false;
  if (wanted.endpoint->done() + 1 != wanted.collective) return nullptr;
  const auto held = [&](Chunk& chunk) {
    return chunk.letter.endpoint == wanted.endpoint && chunk.letter.acknowledged &&
           chunk.letter.strand == wanted.strand && chunk.letter.collective <= wanted.collective &&
           busy(chunk);
  };
  if (wanted.acknowledged &&
      std::count_if(ring.chunks.begin(), ring.chunks.end(), held) >= guaranteed_) {
    return nullptr;
  }
  // The ring may be searched further ahead than find_free did before it grows.
  const auto spare = std::find_if(ring.chunks.begin(), ring.chunks.end(),
                                  [](Chunk& chunk) { return !busy(chunk); });
  if (spare != ring.chunks.end()) return &*spare;
  used_up_ = reserve_ + ring.bytes > reserve_end_;
  if (used_up_) return nullptr;
  ring.chunks.push_back({.offset = reserve_});
  reserve_ += ring.bytes;
  return &ring.chunks.back();
}

std::uint64_t Pool::take(std::uint64_t bytes, const Letter& letter) {
  Ring& ring = is_small(bytes) ? small_ : large_;
  Chunk* chunk = find_free(ring);
  if (chunk == nullptr) chunk = grow(ring, letter);
  if (chunk == nullptr) return 0;
  chunk->letter = letter;
  const std::uint64_t offset = ring.place_in(*chunk, bytes);
  chunk->used = offset - chunk->offset + whole_lines(bytes);
  return offset;
}

Pool::Handed Pool::hand(std::uint64_t bytes, int reader) {
  const bool small = is_small(bytes);
  Stock& stock = stock_of(reader, small);
  ++stock.owed;
  if (stock.count > 0) return stock.chunks[static_cast<std::size_t>(--stock.count)];
  ++given_;
  Ring& ring = small ? small_ : large_;
  const std::uint64_t offset = std::exchange(ring.chunks[ring.next].offset, reserve_);
  ring.chunks[ring.next].used = 0;
  reserve_ += ring.bytes;
  return {.offset = offset, .bytes = ring.bytes};
}

// The chunks of ranks with other settings are of other sizes: all that is known is what one holds.
void Pool::keep(int writer, const Handed& chunk) {
  const bool small = chunk.bytes < large_.bytes || is_small(large_.bytes);
  Stock& stock = stock_of(writer, small);
  --stock.owed;
  stock.most = std::min(stock.most + 1, most_handed_);
  stock.invited = chunk.invites;
  Ring& ring = small ? small_ : large_;
  if (chunk.bytes < ring.bytes) return;  // of no use here
  const auto count = static_cast<std::size_t>(stock.count);
  if (most_handed_ > 0 && count < stock.chunks.size()) {
    stock.chunks[count] = {.offset = chunk.offset, .bytes = chunk.bytes};
    ++stock.count;
  } else if (ring.chunks.size() < ring.chunks.capacity()) {
    // Nothing is allocated: there may be no memory, and the run fails already.
    --given_;
    ring.chunks.push_back({.offset = chunk.offset});
  }
}

void Pool::forget(const Endpoint* endpoint) {
  for (Ring* ring : {&small_, &large_}) {
    for (Chunk& chunk : ring->chunks) {
      if (chunk.letter.endpoint == endpoint) chunk.letter.endpoint = nullptr;
    }
  }
}

}  // namespace carillon::shm
