// SPDX-License-Identifier: Apache-2.0
//
// The split of a vector into near-equal blocks of whole elements.
//
//   Blocks(11 elements, 4 parts)   [0 1 2][3 4 5][6 7 8][9 10]
//   Blocks(2 elements, 4 parts)    [0][1][][]
//
// Or the blocks of the members of a group, which may stand for several ranks each:
//
//   weights 3 1 2, 2 elements      [0 1 2 3 4 5][6 7][8 9 10 11]
#pragma once

#include <algorithm>
#include <vector>

#include "schedule/schedule.h"

namespace carillon {

class Blocks {
 public:
  Blocks(std::int64_t count, std::int32_t element_bytes, Rank parts)
      : each_(count / parts), longer_(count % parts), element_bytes_(element_bytes) {}

  /// One block of shared.count elements per rank, end to end; weights as Call says.
  static Blocks per_rank(const Call& call) {
    const Shared& shared = call.shared;
    Blocks blocks{shared.count * shared.ranks, shared.element_bytes, shared.ranks};
    if (call.weights.empty()) return blocks;
    std::int64_t scale = shared.block_bytes();  // of one weight
    if (shared.collective == Collective::kAlltoall) {
      scale *= call.weights[static_cast<std::size_t>(call.rank)];
    }
    blocks.starts_.push_back(0);
    for (const Rank weight : call.weights) {
      blocks.starts_.push_back(blocks.starts_.back() + weight * scale);
    }
    return blocks;
  }

  /// One block per rank, as the send table has them.
  static Blocks by_tables(const Call& call) {
    const Tables& tables = call.local.tables;
    Blocks blocks{0, call.shared.element_bytes, call.shared.ranks};
    blocks.starts_.push_back(0);
    for (const std::int64_t bytes : tables.send_bytes) {
      blocks.starts_.push_back(blocks.starts_.back() + bytes);
    }
    return blocks;
  }

  /// Bytes of block `part`.
  [[nodiscard]] Range operator[](Rank part) const { return span(part, part + 1); }
  /// Bytes of the blocks first, ..., last-1 together.
  [[nodiscard]] Range span(Rank first, Rank last) const {
    return {start(first), start(last) - start(first)};
  }

  /// Bytes of the longest block.
  [[nodiscard]] std::int64_t longest() const {
    std::int64_t bytes = (each_ + (longer_ > 0 ? 1 : 0)) * element_bytes_;
    if (!starts_.empty()) bytes = 0;
    for (std::size_t i = 1; i < starts_.size(); ++i) {
      bytes = std::max(bytes, starts_[i] - starts_[i - 1]);
    }
    return bytes;
  }

 private:
  [[nodiscard]] std::int64_t start(Rank part) const {
    if (!starts_.empty()) return starts_[static_cast<std::size_t>(part)];
    return (each_ * part + std::min<std::int64_t>(part, longer_)) * element_bytes_;
  }

  std::int64_t each_, longer_;  // elements; the first `longer_` blocks have one more
  std::int64_t element_bytes_;
  std::vector<std::int64_t> starts_;  // bytes; only of blocks that differ by more
};

}  // namespace carillon
