// SPDX-License-Identifier: Apache-2.0
//
// The first half of allreduce.flat_blocks and reduce.flat_blocks: every segment of the vector is
// split into one piece per rank, everybody puts its segment, and rank r reduces piece r of it over
// all ranks, straight from the slots. Two ranks put only the piece the other one needs.
#pragma once

#include "algorithms/common/blocks.h"
#include "algorithms/common/order.h"
#include "algorithms/common/others.h"

namespace carillon {

class FlatBlocks {
 public:
  FlatBlocks(const Call& call, Builder& b) : call_(call), b_(b), pair_(call.shared.ranks == 2) {}

  /// A segment of two ranks is two messages' worth: each half is one message.
  [[nodiscard]] std::int64_t segment_bytes() const {
    return call_.segment_bytes() * (pair_ ? 2 : 1);
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
    if (!pair_) {
      b_.put_all(b_.input(segment));
      return;
    }
    const Range theirs = piece(segment, 1 - call_.rank);
    if (theirs.length > 0) b_.put(1 - call_.rank, b_.input(theirs));
  }

  /// dst <- this rank's piece of all inputs in rank order; `prefix` as in reduce_in_rank_order.
  void reduce_own(Range segment, const Buffer& dst, const Buffer& prefix) {
    const Range own = inner_piece(segment, call_.rank);
    if (pair_ && own.length == 0) return;  // nobody put anything
    reduce_in_rank_order(b_, call_.shared.ranks, call_.rank, dst, prefix, [&](Rank rank) {
      if (rank == call_.rank) return b_.input(segment.sub(own));
      const Message m = wait_other(call_, b_, rank);
      return b_.slot(m, Range{pair_ ? 0 : own.offset, own.length});
    });
  }

 private:
  const Call& call_;
  Builder& b_;
  bool pair_;
};

}  // namespace carillon
