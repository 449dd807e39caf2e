// SPDX-License-Identifier: Apache-2.0
//
// A rank's pool of chunks: where messages too long for a line are put, read by any process of the
// node. Chunks are used in turn, so that a chunk is written again only after the whole pool has
// passed: a ring smaller than the readers' caches would make every write fetch the line back from
// one of them. A message that is shorter than its chunk
// goes behind the one that was there before, so that this holds for short ones, too.
//
// A chunk is free when its message is released; nobody frees it. If others hold the whole pool, it
// grows for the oldest collective of each team, so that none can starve another: by a chunk for
// every message that the readers release only at the end of the collective, and for each of its
// strands by `guaranteed` chunks for those they acknowledge one by one. (Later collectives can
// wait: the oldest does not wait for them.)
//
// A chunk with a message for one reader may be handed over instead: with the message's release it
// is the reader's, who writes its next one to that rank there. So two ranks that write to each
// other write where they have just read: those lines are in their own caches, where a rank that
// writes to what others have just read has to get each back from them first. Only so many chunks
// more go to a rank than have come from there, at first two: it may never write back. Small and
// large ones are counted apart: each may go one way only. Others of the reserve take the place of
// those that go.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/shm/endpoint.h"

namespace carillon::shm {

class Pool {
 public:
  /// Large chunks hold `chunk_bytes`, small ones kSmallBytes. At most `most_handed` chunks of each
  /// more go to another rank than have come from it: up to kMostHanded, 0: none.
  Pool(Segment& segment, int node_rank, std::uint64_t chunk_bytes, int guaranteed, int most_handed);

  static constexpr int kToAll = -1, kToDomain = -2;
  static constexpr int kMostHanded = 16;

  /// The message that a chunk holds.
  struct Letter {
    Endpoint* endpoint = nullptr;  ///< null: none
    std::int32_t peer = 0;         ///< the reader, kToAll or kToDomain
    std::uint64_t number = 0;
    std::uint64_t collective = 0;
    std::uint32_t strand = 0;   ///< of the collective, that puts it
    bool acknowledged = false;  ///< readers tell the release of this very message
  };

  /// Offset from the segment's start of a free chunk of at least `bytes` (at most chunk_bytes) for
  /// the given message; 0 if there is none now. Taken as soon as returned.
  std::uint64_t take(std::uint64_t bytes, const Letter& letter);
  /// Has take() just found none because there is nothing left to grow by? Then one comes free only
  /// when a message is released whose readers may be waiting for this very one.
  [[nodiscard]] bool is_used_up() const { return used_up_; }
  [[nodiscard]] std::uint64_t bytes() const {
    return small_.bytes * small_.chunks.size() + large_.bytes * large_.chunks.size();
  }
  /// Calls body(const Letter&) for each message that has a chunk and is not released.
  template <typename Body>
  void each_letter(Body body) {
    for (Ring* ring : {&small_, &large_}) {
      for (Chunk& chunk : ring->chunks) {
        if (busy(chunk)) body(std::as_const(chunk.letter));
      }
    }
  }
  /// Is there one without more ado? Then take() finds it.
  [[nodiscard]] bool has_next(std::uint64_t bytes) {
    Ring& ring = is_small(bytes) ? small_ : large_;
    return !busy(ring.chunks[ring.next]);
  }
  /// Which chunk the next message of that length will probably take.
  [[nodiscard]] std::uint64_t next_offset(std::uint64_t bytes) const {
    const Ring& ring = is_small(bytes) ? small_ : large_;
    return ring.place_in(ring.chunks[ring.next], bytes);
  }

  struct Handed {
    std::uint64_t offset = 0;  ///< from the segment's start
    std::uint64_t bytes = 0;   ///< of the chunk
    bool invites = false;      ///< its giver would have another one for it
  };
  /// May a message of so many bytes (at most chunk_bytes) to that rank of the node have a chunk
  /// that goes along with it?
  [[nodiscard]] bool can_hand(std::uint64_t bytes, int reader) {
    if (most_handed_ == 0) return false;
    const bool small = is_small(bytes);
    const Stock& stock = stock_of(reader, small);
    return stock.count > 0 || may_give(small ? small_ : large_, stock);
  }
  /// Has one come from there, and would that rank have it back with a message of so many bytes?
  [[nodiscard]] bool is_invited(std::uint64_t bytes, int reader) const {
    const Stock& stock = stock_of(reader, is_small(bytes));
    return stock.invited && stock.count > 0;
  }
  /// Such a chunk, if can_hand: the one that came from there last, or else one of the pool. It is
  /// this rank's no more.
  Handed hand(std::uint64_t bytes, int reader);
  /// One that a rank of the node has handed over, and whose message is released.
  void keep(int writer, const Handed& chunk);

  /// The endpoint is about to go, and all its messages are released.
  void forget(const Endpoint* endpoint);

 private:
  struct Chunk {
    std::uint64_t offset = 0;
    std::uint64_t used = 0;  // of its bytes, since it was last begun at its start
    Letter letter;
  };
  struct Ring {
    // Where in a free chunk a message goes: behind the last one, if there is room, so that short
    // messages, too, pass through the whole pool.
    [[nodiscard]] std::uint64_t place_in(const Chunk& chunk, std::uint64_t length) const {
      return chunk.offset + (chunk.used + length <= bytes ? chunk.used : 0);
    }
    std::vector<Chunk> chunks;
    std::size_t next = 0;
    std::uint64_t bytes = 0;
  };

  // Users' operators and kernels read elements there: they are aligned.
  static constexpr std::uint64_t whole_lines(std::uint64_t bytes) {
    return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  }
  [[nodiscard]] bool is_small(std::uint64_t bytes) const {
    return bytes <= kSmallBytes && small_.bytes <= large_.bytes;
  }
  static bool busy(Chunk& chunk);
  Chunk* find_free(Ring& ring);
  Chunk* grow(Ring& ring, const Letter& wanted);

  // Small or large chunks that have come from one rank of the node, for messages to it; and how
  // many more have gone there. A rank gives of its own only when it has none: there are no more
  // than both ranks may give.
  struct Stock {
    std::array<Handed, std::size_t{2}* kMostHanded> chunks = {};
    int count = 0, owed = 0, most = 0;
    bool invited = false;
  };
  using Stocks = std::array<Stock, 2>;
  [[nodiscard]] Stock& stock_of(int rank, bool small) {
    return stocks_[static_cast<std::size_t>(rank)][small ? 0 : 1];
  }
  [[nodiscard]] const Stock& stock_of(int rank, bool small) const {
    return stocks_[static_cast<std::size_t>(rank)][small ? 0 : 1];
  }
  [[nodiscard]] bool may_give(Ring& ring, const Stock& stock) const {
    return stock.owed < stock.most && given_ < kMostGiven &&
           reserve_ + ring.bytes <= reserve_end_ && !busy(ring.chunks[ring.next]);
  }
  static constexpr int kFirstHanded = 2;
  static constexpr int kMostGiven = 64;  // to all together

  Ring small_, large_;
  std::vector<Stocks> stocks_;  // by rank of the node
  int most_handed_, given_ = 0;
  std::uint64_t reserve_;
  std::uint64_t reserve_end_;
  int guaranteed_;
  bool used_up_ = false;
};

}  // namespace carillon::shm
