// SPDX-License-Identifier: Apache-2.0
//
// The first half of allreduce.flat_blocks and reduce.flat_blocks: every segment of the vector is
// split into one piece per rank, everybody puts its segment, and rank r reduces piece r of it over
// all ranks, straight from the slots. Where a message has only one reader (two ranks, or ranks that
// are not all those of a node) it is only the piece that one needs.
#pragma once

#include "algorithms/common/blocks.h"
#include "algorithms/common/order.h"
#include "algorithms/common/others.h"
#include "algorithms/common/segments.h"

namespace carillon {

class FlatBlocks {
 public:
  /// To whom a rank puts its first piece, where pieces are messages: to the rank after it, so that
  /// all ranks are done at the same time, or all to rank 0, so that one rank after another is: its
  /// result is on its way to a root while the others still reduce.
  enum class First : std::uint8_t { kNext, kRankZero };

  FlatBlocks(const Call& call, Builder& b, First first)
      : call_(call),
        b_(b),
        first_(first == First::kNext ? call.rank + 1 : 0),
        single_(call.shared.ranks == 2 || !b.reaches_all()) {}

  /// If a piece is a message, a segment is one for each rank.
  [[nodiscard]] std::int64_t segment_bytes() const {
    return call_.segment_bytes() * (single_ ? call_.shared.ranks : 1);
  }
  /// Whether a segment is so many large messages that ranks that put before they take would wait
  /// for one another.
  [[nodiscard]] bool needs_strands() const {
    return b_.put_all_is_large(std::min(call_.segment_bytes(), call_.shared.block_bytes()));
  }

  /// Piece `owner`, relative to the segment.
  [[nodiscard]] Range inner_piece(Range segment, Rank owner) const {
    const std::int32_t element = call_.shared.element_bytes;
    return Blocks(segment.length / element, element, call_.shared.ranks)[owner];
  }
  /// Piece `owner` of a segment of the vector.
  [[nodiscard]] Range piece(Range segment, Rank owner) const {
    return segment.sub(inner_piece(segment, owner));
  }

  void put_input(Range segment) {
    if (!single_) {
      b_.put_all(b_.input(segment));
      return;
    }
    for (Rank step = 0; step < call_.shared.ranks; ++step) {
      const Rank peer = wrap(std::int64_t{first_} + step, call_.shared.ranks);
      const Range theirs = piece(segment, peer);
      if (peer != call_.rank && theirs.length > 0) b_.put(peer, b_.input(theirs));
    }
  }

  /// dst <- this rank's piece of all inputs in rank order; `prefix` as in reduce_in_rank_order.
  void reduce_own(Range segment, const Buffer& dst, const Buffer& prefix) {
    const Range own = inner_piece(segment, call_.rank);
    if (single_ && own.length == 0) return;  // nobody put anything
    reduce_in_rank_order(b_, call_.shared.ranks, call_.rank, dst, prefix, [&](Rank rank) {
      if (rank == call_.rank) return b_.input(segment.sub(own));
      const Message m = wait_other(call_, b_, rank, own.length);
      return b_.slot(m, Range{single_ ? 0 : own.offset, own.length});
    });
  }

 private:
  const Call& call_;
  Builder& b_;
  Rank first_;   // gets the first piece
  bool single_;  // a message is a piece
};

/// The whole of a flat_blocks algorithm, by what is done for a segment: reduce_own(s), then
/// put_own(s), the result, then collect(s) those of others. The next segment is put before the
/// results of this one are collected. Long messages across nodes go in strands of their own, all
/// input before all results.
template <typename ReduceOwn, typename PutOwn, typename Collect>
void flat_blocks(const Call& call, Builder& b, FlatBlocks& flat, ReduceOwn reduce_own,
                 PutOwn put_own, Collect collect) {
  const std::int64_t bytes = call.shared.block_bytes();
  const std::int64_t segment = flat.segment_bytes();
  const auto put_input = [&](Range s) { flat.put_input(s); };
  const auto finish_own = [&](Range s) {
    reduce_own(s);
    put_own(s);
  };
  if (flat.needs_strands()) {
    b.segments(bytes, segment, put_input);
    b.wait(call.rank, 0);  // until all of the own pieces are reduced
    b.segments(bytes, segment, put_own);
    b.strand();
    b.segments(bytes, segment, reduce_own);
    b.signal(call.rank);
    b.strand();
    b.segments(bytes, segment, collect);
    return;
  }
  pipeline(
      b, bytes, segment,
      [&](Range s) {
        put_input(s);
        finish_own(s);
      },
      [&](Range now, Range next) {
        put_input(next);
        collect(now);
        finish_own(next);
      },
      collect);
}

}  // namespace carillon
