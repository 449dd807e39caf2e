// SPDX-License-Identifier: Apache-2.0
//
// One message with something for everybody: how reduce_scatter_block.flat and alltoall.flat cut
// P blocks into messages that all ranks read. A message holds the same segment of the blocks of
// all other ranks or, where not even an element for each fits, of those in a group of consecutive
// ranks. Where a message has only one reader it holds what that one needs: of two ranks, and of
// ranks that are not all those of a node.
//
//   blocks of 4 ranks at rank 2   [a0 a1 a2][b0 b1 b2][c0 c1 c2][d0 d1 d2]
//   messages                      a0 b0 d0 | a1 b1 d1 | a2 b2 d2
#pragma once

#include <algorithm>

#include "algorithms/common/blocks.h"
#include "algorithms/common/vrank.h"

namespace carillon {

class Personalized {
 public:
  Personalized(const Call& call, const Builder& b)
      : call_(call),
        blocks_(Blocks::per_rank(call)),
        group_(call.shared.ranks),
        single_(call.shared.ranks == 2 || !b.reaches_all()) {
    const std::int64_t elements = call.segment_bytes() / call.shared.element_bytes;
    if (!single_ && group_ > elements) group_ = static_cast<Rank>(elements);
  }

  /// Ranks served by one message.
  [[nodiscard]] Rank group() const { return group_; }
  /// Bytes for each of them.
  [[nodiscard]] std::int64_t segment_bytes() const {
    if (single_) return call_.segment_bytes();
    const std::int64_t element = call_.shared.element_bytes;
    return call_.segment_bytes() / group_ / element * element;
  }

  /// Puts segment s of the others' blocks in the group that starts at rank `first`.
  template <typename Source>
  void put(Builder& b, Rank first, Range s, Source source) const {
    if (single_) {
      for (Rank step = 1; step < group_; ++step) {  // as Builder::put_all goes
        const Rank rank = wrap(std::int64_t{call_.rank} + step, group_);
        b.put(rank, source(blocks_[rank].sub(s)));
      }
      return;
    }
    BufferList list;
    for (Rank rank = first; rank < end(first); ++rank) {
      if (rank != call_.rank) list.add(source(blocks_[rank].sub(s)));
    }
    if (list.items().empty()) {
      b.signal_all();
    } else {
      b.put_all(list);
    }
  }

  /// Waits for peer's message; the part for this rank, empty if it is not in the group.
  [[nodiscard]] Buffer wait(Builder& b, Rank peer, Rank first, Range s) const {
    if (single_) return b.slot(b.wait(peer, s.length), Range{0, s.length});
    const Message m = b.wait_all(peer);
    if (!serves_me(first)) return b.slot(m, Range{});
    const Rank before = call_.rank - first - (first <= peer && peer < call_.rank ? 1 : 0);
    return b.slot(m, Range{before * s.length, s.length});
  }
  [[nodiscard]] bool serves_me(Rank first) const {
    return single_ || (first <= call_.rank && call_.rank < end(first));
  }
  [[nodiscard]] const Blocks& blocks() const { return blocks_; }

 private:
  [[nodiscard]] Rank end(Rank first) const { return std::min(first + group_, call_.shared.ranks); }

  const Call& call_;
  Blocks blocks_;
  Rank group_;
  bool single_;  // a message serves one rank, and has only what that one needs
};

}  // namespace carillon
